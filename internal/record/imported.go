package record

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Imported converts the output of another program or an older fullpipe to a stored document: an object of
// `iperf3 --json`, or a report without id. It returns records unchanged. Equal texts become equal records, so that a
// text can be imported twice.
func Imported(text []byte) ([]byte, error) {
	if err := checkSize(text); err != nil {
		return nil, err
	}
	var probe struct {
		Schema string          `json:"schema"`
		Start  json.RawMessage `json:"start"`
		End    json.RawMessage `json:"end"`
	}
	if err := json.Unmarshal(text, &probe); err != nil {
		return nil, fmt.Errorf("no JSON object: %w", err)
	}
	var doc Document
	kind := ""
	switch {
	case probe.Schema == "" && probe.Start != nil && probe.End != nil:
		var err error
		if doc, err = fromIperf3(text); err != nil {
			return nil, err
		}
		kind = "imported iperf3"
	default:
		var err error
		if doc, err = Decode(text, nil); err != nil {
			return nil, err
		}
		if e := doc.Head().Envelope; e != nil && e.ID != "" {
			return text, nil
		}
		if len(Summarize(doc).Figures) == 0 {
			return nil, errors.New("nothing was measured in it, so it is no result to keep")
		}
		kind = "imported " + Summarize(doc).Kind
	}
	h := doc.Head()
	if h.StartedAt.IsZero() {
		return nil, errors.New("it does not say when it was measured")
	}
	digest := sha256.Sum256(text)
	path := SeriesID{Far: Summarize(doc).Far, Kind: kind, Protocol: protocolOf(doc), Streams: streamsOf(doc)}
	h.Envelope = &Envelope{ID: NewID(h.StartedAt, [10]byte(digest[:10])), PathKey: path.Key(), Origin: Manual,
		Outcome: Summarize(doc).Outcome, Labels: map[string]string{"imported": kind[len("imported "):]}}
	return Encode(doc)
}

func protocolOf(doc Document) string {
	if _, udp := doc.(*MeasureUDP); udp {
		return "udp"
	}
	return "tcp"
}

// streamsOf returns the number of connections of a result, which is part of its series.
func streamsOf(doc Document) int {
	switch d := doc.(type) {
	case *Measure:
		if len(d.Directions) > 0 {
			return len(d.Directions[0].Streams)
		}
	case *MeasureUDP:
		if len(d.Directions) > 0 {
			return d.Directions[0].Streams
		}
	}
	return 0
}

// iperf3Object is the part of the output of iperf3 --json that is imported.
type iperf3Object struct {
	Start struct {
		Connected []struct {
			LocalHost  string `json:"local_host"`
			LocalPort  int    `json:"local_port"`
			RemoteHost string `json:"remote_host"`
			RemotePort int    `json:"remote_port"`
		} `json:"connected"`
		Version   string `json:"version"`
		Timestamp struct {
			Seconds int64 `json:"timesecs"`
		} `json:"timestamp"`
		Connecting *iperf3Address `json:"connecting_to"`
		Accepted   *iperf3Address `json:"accepted_connection"`
		Test       struct {
			Protocol string  `json:"protocol"`
			Streams  int     `json:"num_streams"`
			Length   int     `json:"blksize"`
			Reverse  int     `json:"reverse"`
			Bitrate  float64 `json:"target_bitrate"`
		} `json:"test_start"`
	} `json:"start"`
	End struct {
		Streams []struct {
			Sender   iperf3Span `json:"sender"`
			Receiver iperf3Span `json:"receiver"`
		} `json:"streams"`
		Sum              *iperf3Span `json:"sum"`
		Received         *iperf3Span `json:"sum_received"`
		ReceivedReverse  *iperf3Span `json:"sum_received_bidir_reverse"`
		SenderCongestion string      `json:"sender_tcp_congestion"`
	} `json:"end"`
	Error    string `json:"error"`
	Fullpipe *struct {
		Directions []Direction `json:"directions"`
	} `json:"fullpipe"`
}

type iperf3Address struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

type iperf3Span struct {
	Seconds     float64 `json:"seconds"`
	Bytes       int64   `json:"bytes"`
	Bps         float64 `json:"bits_per_second"`
	Retransmits *int64  `json:"retransmits"`
	MinRTT      float64 `json:"min_rtt"` // µs
	MeanRTT     float64 `json:"mean_rtt"`
	JitterMs    float64 `json:"jitter_ms"`
	Lost        int64   `json:"lost_packets"`
	Packets     int64   `json:"packets"`
	Sender      bool    `json:"sender"`
}

// fromIperf3 converts a test of iperf3. Its limiter is unknown, unless our own client printed the object.
func fromIperf3(text []byte) (Document, error) {
	var o iperf3Object
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, fmt.Errorf("an object of iperf3 --json: %w", err)
	}
	h := Header{Schema: "fullpipe/measure/v1", Version: o.Start.Version,
		StartedAt: time.Unix(o.Start.Timestamp.Seconds, 0).UTC()}
	if o.Start.Timestamp.Seconds <= 0 {
		h.StartedAt = time.Time{}
	}
	far := o.Start.Connecting
	server := false
	if far == nil {
		far = o.Start.Accepted
		server = true
	}
	if far == nil && o.Error != "" {
		return nil, fmt.Errorf("a test of iperf3 that failed: %.200s", o.Error)
	}
	if far == nil {
		return nil, errors.New("an object of iperf3 --json that names no far end")
	}
	peer := fmt.Sprintf("iperf3://%s", far.Host)
	if !server && far.Port != transfer.DefaultPort {
		peer = fmt.Sprintf("iperf3://%s:%d", far.Host, far.Port)
	}
	forward := transfer.Up
	back := transfer.Down
	if server != (o.Start.Test.Reverse != 0) {
		forward, back = back, forward
	}
	if strings.EqualFold(o.Start.Test.Protocol, "udp") {
		return o.datagrams(h, peer, forward)
	}
	doc := &Measure{Header: h, Peer: peer, Directions: []Direction{}}
	if o.Fullpipe != nil {
		doc.Directions = o.Fullpipe.Directions
	} else {
		if s := o.End.Received; s != nil && o.counted(s) {
			doc.Directions = append(doc.Directions, o.direction(forward, s))
		}
		if s := o.End.ReceivedReverse; s != nil && o.counted(s) {
			doc.Directions = append(doc.Directions, o.direction(back, s))
		}
	}
	if o.Error != "" {
		doc.Error = &Failure{Code: "failed", Message: o.Error}
	}
	if len(doc.Directions) == 0 && doc.Error == nil {
		return nil, errors.New("an object of iperf3 --json without sums: the test was cut short")
	}
	return doc, check(doc)
}

// counted reports whether a receiver's sum is known: in an interrupted test the receiver may not have reported it.
func (o *iperf3Object) counted(s *iperf3Span) bool { return o.Error == "" || s.Bytes > 0 }

// direction is one direction's sum and streams. In a bidirectional test each stream reports whether this end sent it.
func (o *iperf3Object) direction(d transfer.Direction, s *iperf3Span) Direction {
	out := Direction{Direction: d, GoodputBps: &s.Bps, DurationS: &s.Seconds, Bytes: &s.Bytes,
		Verdict: verdict.Verdict{Limiter: verdict.Unknown, Confidence: verdict.Low,
			Shares: verdict.Shares{verdict.Unknown: 1}}, Streams: []Stream{}}
	for i, one := range o.End.Streams {
		if o.End.ReceivedReverse != nil && one.Sender.Sender != (d == transfer.Up) {
			continue
		}
		stream := Stream{Bytes: one.Receiver.Bytes, GoodputBps: one.Receiver.Bps, Congestion: o.End.SenderCongestion,
			Retransmitted: one.Sender.Retransmits}
		if i < len(o.Start.Connected) {
			c := o.Start.Connected[i]
			stream.Local = fmt.Sprintf("%s:%d", c.LocalHost, c.LocalPort)
			stream.Remote = fmt.Sprintf("%s:%d", c.RemoteHost, c.RemotePort)
		}
		if rtt := micros(one.Sender.MinRTT); rtt > 0 && (out.RTTMin == 0 || rtt < out.RTTMin) {
			out.RTTMin = rtt
		}
		if out.RTTMean == 0 {
			out.RTTMean = max(micros(one.Sender.MeanRTT), 0)
		}
		if n := one.Sender.Retransmits; n != nil {
			total := *n
			if out.RetransmittedSegment != nil {
				total += *out.RetransmittedSegment
			}
			out.RetransmittedSegment = &total
		}
		out.Streams = append(out.Streams, stream)
	}
	return out
}

func micros(v float64) units.Duration { return units.Duration(units.Seconds(v / 1e6)) }

// datagrams converts a UDP test. The sum's rate is the sender's, so the lost datagrams are subtracted.
func (o *iperf3Object) datagrams(h Header, peer string, d transfer.Direction) (Document, error) {
	s := o.End.Sum
	if s == nil || s.Packets <= 0 || s.Lost < 0 || s.Lost > s.Packets {
		return nil, errors.New("an object of iperf3 --json without a sum: the test was cut short")
	}
	arrived := float64(s.Packets-s.Lost) / float64(s.Packets)
	one := Datagrams{Direction: d, Protocol: "udp", GoodputBps: s.Bps * arrived, DurationS: s.Seconds,
		Bytes: int64(float64(s.Bytes) * arrived), DatagramBytes: o.Start.Test.Length, Streams: max(o.Start.Test.Streams, 1),
		Sent: s.Packets, Received: s.Packets - s.Lost, Lost: s.Lost, LossRatio: 1 - arrived, JitterS: s.JitterMs / 1e3}
	if o.Start.Test.Bitrate > 0 {
		one.OfferedBps = &o.Start.Test.Bitrate
	}
	doc := &MeasureUDP{Header: h, Peer: peer, Directions: []Datagrams{one}}
	if o.Error != "" {
		doc.Error = &Failure{Code: "failed", Message: o.Error}
	}
	return doc, check(doc)
}
