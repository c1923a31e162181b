package simpeer

import "github.com/fullpipe-net/fullpipe/internal/transfer"

// split returns connections that share what one stream carried.
func split(s transfer.Stream, streams int) (all []transfer.Stream) {
	n := int64(max(streams, 1))
	for range n {
		one := s
		one.Bytes /= n
		one.Samples = nil
		for _, sample := range s.Samples {
			sample.Acked /= n
			sample.Received /= n
			sample.Retransmitted = (sample.Retransmitted + n - 1) / n
			sample.DeliveryBps /= float64(n)
			sample.InFlight /= n
			sample.Cwnd /= n
			one.Samples = append(one.Samples, sample)
		}
		all = append(all, one)
	}
	return all
}
