package guard

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

var agree = threshold.FiguresAgree.Value

// evidenceRelations are relations between the values of one piece of evidence, and between them and the figures of its
// direction. See products for the names that are not keys.
var evidenceRelations = []relation{
	// A figure and its bound.
	{left: "rtt_base_s", factor: threshold.RTTScatter.Value, right: "rtt_s"},
	{left: "retransmitted_segments", factor: 1, right: "segments"},
	{left: "outside", factor: 1, right: "blocks"},
	{left: "agree", factor: 1, right: "runs"},
	{left: "missing_bytes", factor: agree, right: "bytes_with_missing"},
	{left: "from_s", factor: 1, right: "to_s"},
	{left: "wait_s", factor: agree, right: "total_s"},
	{left: "idle_s", factor: agree, right: "total_s"},
	{left: "paused_s", factor: agree, right: "total_s"},
	{left: "awaited_s", factor: agree, right: "total_s"},
	{left: "stalled_s", factor: agree, right: "connection_s"},

	// Shares.
	{left: "time_ratio", factor: agree, right: "1"},
	{left: "retransmitted_ratio", factor: agree, right: "1"},
	{left: "missing_ratio", factor: agree, right: "1"},
	{left: "closed_ratio", factor: agree, right: "1"},
	{left: "full_ratio", factor: agree, right: "1"},
	{left: "room_ratio", factor: agree, right: "1"},
	{left: "idle_ratio", factor: agree, right: "1"},
	{left: "receiver_ratio", factor: agree, right: "1"},
	{left: "send_buffer_ratio", factor: agree, right: "1"},
	{left: "out_of_order_ratio", factor: agree, right: "1"},
	{left: "best_ratio", factor: threshold.CauseFactor.Value, right: "1"},

	// Round trips that the sentence needs.
	{codes: throughRTT, left: "rtt_s", right: zero},
	{codes: []verdict.Code{verdict.CapturedWaitsSomewhere}, left: "rtt_base_s", right: zero},

	// Rates: a rate that is compared with a better one, and bytes that a rate and its time carry.
	{codes: belowBest, left: "steady_bps", factor: agree, right: "best_bps"},
	{codes: wholeTimeRate, left: "best_bytes", factor: threshold.CarriedMax.Value, right: "carried_bytes"},
	{codes: exchanges, left: "exchanged_bytes", factor: agree, right: "carried_bytes"},
	{codes: windows, left: "stream_bps", factor: threshold.WindowMin.Value * agree, right: "allows_most_bps"},

	// Rates of one transfer are no more than its path carries. A policer lets its first burst through.
	{left: "steady_bps", factor: agree, right: "path_bps"},
	{codes: bestOfPath, left: "best_bps", factor: agree, right: "path_bps"},
	{left: "link_least_bps", factor: agree, right: "path_bps", drops: []string{"link_least_bps"}},

	// A prediction is no less than the measured rate.
	{left: "allows_bps", factor: 1, right: "twice_bps", drops: predicted},
	{left: "goodput_bps", factor: 1, right: "twice_bps", drops: predicted},
	{left: "twice_bps", factor: agree, right: "eightfold_bps", drops: []string{"eightfold_bps"}},
	{left: "stream_bps", factor: agree, right: "link_least_bps", drops: []string{"link_least_bps"}},
}

var (
	predicted = []string{"twice_bps", "eightfold_bps"}
	belowBest = []verdict.Code{verdict.LossBelowBest, verdict.MarksBelowBest}
	windows   = []verdict.Code{verdict.ReceiveWindowFull, verdict.SendBufferFull, verdict.WindowEachRoundTrip,
		verdict.CapturedWindowFull, verdict.CapturedProgramWindow, verdict.WatchedProgramWindow}
	exchanges  = []verdict.Code{verdict.CapturedExchanges, verdict.WatchedExchanges}
	throughRTT = append([]verdict.Code{verdict.CapturedAckQueue}, append(windows, exchanges...)...)
	// bestOfPath are observations with a rate that the path gave for a part of the time.
	bestOfPath = append([]verdict.Code{verdict.LossWithoutCPU, verdict.CwndOpens, verdict.CwndFull,
		verdict.FullLinkOnceOpen, verdict.ArrivesWithHoles}, belowBest...)
	// wholeTimeRate are observations of one connection's rate in a share of its time.
	wholeTimeRate = []verdict.Code{verdict.CapturedFullLink, verdict.CapturedQueueUnseen, verdict.CapturedLossOrLink}
)

// products adds the figures of a piece of evidence that are products of its values: best_bytes (its best rate times its
// time), exchanged_bytes (of all exchanges), allows_most_bps (of a window that was full nearly all the time) and
// bytes_with_missing (transferred or missing).
func products(s scope, v verdict.Values) {
	if length, ok := s["duration_s"]; ok && v["best_bps"] > 0 {
		s["best_bytes"] = v["best_bps"] / 8 * v["time_ratio"] * length
	}
	if n, ok := v["exchanges"]; ok {
		s["exchanged_bytes"] = n * v["block_bytes"]
	}
	if v["time_ratio"] >= threshold.ClearShare.Value {
		s["allows_most_bps"] = v["allows_bps"]
	}
	if bytes, ok := s["bytes"]; ok {
		s["bytes_with_missing"] = max(bytes, v["bytes"]) + s["uncaptured_bytes"]
	}
}

// directionRelations are relations between the figures of one direction of a transfer, measured, watched or captured.
var directionRelations = []relation{
	{left: "goodput_bps", factor: agree, right: "carried_bps", drops: []string{"goodput_bps"}},
	{left: "steady_bytes", factor: agree, right: "carried_bytes", drops: []string{"steady_goodput_bps"}},
	{left: "rtt_min_s", factor: threshold.RTTScatter.Value, right: "rtt_mean_s", drops: []string{"rtt_mean_s"}},
	{left: "rtt_min_s", factor: threshold.RTTScatter.Value, right: "rtt_loaded_s", drops: []string{"rtt_loaded_s"}},
	{left: "rtt_min_s", factor: threshold.RTTScatter.Value, right: "rtt_max_s", drops: []string{"rtt_max_s"}},
	{left: "rtt_min_s", factor: threshold.RTTScatter.Value, right: "rtt_s", drops: []string{"rtt_s"}},
	{left: "latency_loaded_s", factor: 1, right: "latency_p95_s", drops: []string{"latency"}},
	{left: "latency_p95_s", factor: 1, right: "latency_largest_s", drops: []string{"latency"}},
	{left: "interval_bytes", factor: agree, right: "carried_bytes", drops: []string{"intervals"}},
	{left: "interval_bps", factor: agree, right: "interval_carried_bps", drops: []string{"intervals"}},
	{left: "goodput_bps", factor: 1, right: "prediction_low_bps", drops: []string{"prediction"}},
	{left: "prediction_low_bps", factor: 1, right: "prediction_high_bps", drops: []string{"prediction"}},
	{left: "goodput_bps", factor: 1, right: "expected_low_bps", drops: []string{"expected"}},
	{left: "expected_low_bps", factor: 1, right: "expected_high_bps", drops: []string{"expected"}},
}

// loopRelations are relations between the figures of repeated transfers on a path with a measured capacity, and of the
// comparison of two of them. The capacity is removed if a transfer carried more, else the interval whose end exceeds
// it. product_bytes is the capacity times the round trip. most_factor is the greatest ratio of the ends of the two
// intervals, least_factor the smallest one. flight_bytes is a transfer's goodput times the shortest round trip.
var loopRelations = []relation{
	{left: "goodput_bps", factor: agree, right: "capacity_bps", drops: []string{"capacity_bps"}},
	{left: "interval_high_bps", factor: agree, right: "capacity_bps", drops: []string{"interval_high_bps"}},
	{left: "file_bps", factor: agree, right: "capacity_bps", drops: []string{"file_bps"}},
	{left: "rtt_min_s", factor: threshold.RTTScatter.Value, right: "rtt_loaded_s", drops: []string{"rtt_loaded_s"}},
	{left: "capacity_bps", factor: 1, right: "bottleneck_bps", drops: []string{"capacity_bps"}},
	{left: "bdp_bytes", factor: agree, right: "product_bytes", drops: []string{"bdp_bytes"}},
	{left: "product_bytes", factor: agree, right: "bdp_bytes", drops: []string{"bdp_bytes"}},
	{left: "interval_low_bps", factor: agree, right: "median_bps", drops: []string{"interval_bps"}},
	{left: "median_bps", factor: agree, right: "interval_high_bps", drops: []string{"interval_bps"}},
	{left: "factor_low", factor: 1, right: "factor", drops: []string{"factor_interval"}},
	{left: "factor", factor: 1, right: "factor_high", drops: []string{"factor_interval"}},
	{left: "factor_low", factor: agree, right: "most_factor", drops: []string{"factor"}},
	{left: "least_factor", factor: agree, right: "factor_high", drops: []string{"factor"}},
	{left: "chosen_bytes", factor: 1, right: "tried_bytes", drops: []string{"chosen_bytes"}},
	{left: "flight_bytes", factor: inFlight, right: "effective_bytes", drops: []string{"effective_bytes"}},
	{left: "retransmitted_ratio", factor: agree, right: "1", drops: []string{"retransmitted_ratio"}},
}

// inFlight is by how much the goodput times the shortest round trip may exceed the greatest amount in flight.
var inFlight = threshold.WindowMin.Value * agree

// testRelations are relations between the figures of one test of `rfc6349`, of its runs and of the values that follow
// from the bottleneck. They are two-way where a figure is computed from the others: ideal_s and delayed_s are the
// run's time and mean round trip, computed from its ratios. Of a criterion, test_bps is what its test gave, and
// verdict_low and verdict_high are its measured and its required value in the order that its verdict says.
var testRelations = []relation{
	{left: "bottleneck_low_bps", factor: 1, right: "bottleneck_bps", drops: []string{"range_bps"}},
	{left: "bottleneck_bps", factor: 1, right: "bottleneck_high_bps", drops: []string{"range_bps"}},
	{left: "max_tcp_bps", factor: 1, right: "reference_bps", drops: []string{"max_tcp_bps"}},
	{left: "max_beside_acks_bps", factor: 1, right: "max_tcp_bps", drops: []string{"max_beside_acks_bps"}},
	{left: "bdp_bytes", factor: agree, right: "product_bytes", drops: []string{"bdp_bytes"}},
	{left: "product_bytes", factor: agree, right: "bdp_bytes", drops: []string{"bdp_bytes"}},
	{left: "required", factor: 1, right: "due", drops: []string{"criterion"}},
	{left: "verdict_low", factor: 1, right: "verdict_high", drops: []string{"criterion"}},
	{left: "goodput_bps", factor: agree, right: "test_bps", drops: []string{"criterion"}},
	{left: "test_bps", factor: agree, right: "goodput_bps", drops: []string{"criterion"}},
	{left: "interval_low_bps", factor: agree, right: "goodput_bps", drops: []string{"interval_bps"}},
	{left: "goodput_bps", factor: agree, right: "interval_high_bps", drops: []string{"interval_bps"}},
	{left: "goodput_bps", factor: agree, right: "run_most_bps", drops: []string{"goodput_bps"}},
	{left: "run_least_bps", factor: agree, right: "goodput_bps", drops: []string{"goodput_bps"}},
	{left: "achievable_bps", factor: agree, right: "line_bps", drops: []string{"achievable_bps"}},
	{left: "whole_bps", factor: agree, right: "carried_bps", drops: []string{"run"}},
	{left: "carried_bps", factor: threshold.CarriedMax.Value, right: "whole_bps", drops: []string{"run"}},
	{left: "steady_bytes", factor: agree, right: "carried_bytes", drops: []string{"run"}},
	{left: "ideal_s", factor: agree, right: "duration_s", drops: []string{"transfer_time_ratio"}},
	{left: "duration_s", factor: agree, right: "ideal_s", drops: []string{"transfer_time_ratio"}},
	{left: "ideal_bps", factor: agree, right: "max_bps", drops: []string{"steady_time_ratio"}},
	{left: "max_bps", factor: agree, right: "ideal_bps", drops: []string{"steady_time_ratio"}},
	{left: "retransmitted_bytes", factor: 1, right: "sent_bytes", drops: []string{"sender"}},
	{left: "once_bytes", factor: agree, right: "efficient_bytes", drops: []string{"sender"}},
	{left: "efficient_bytes", factor: agree, right: "once_bytes", drops: []string{"sender"}},
	{left: "rtt_min_s", factor: threshold.RTTScatter.Value, right: "rtt_mean_s", drops: []string{"round_trips"}},
	{left: "delayed_s", factor: agree, right: "rtt_mean_s", drops: []string{"buffer_delay"}},
	{left: "rtt_mean_s", factor: agree, right: "delayed_s", drops: []string{"buffer_delay"}},
	{left: "flight_bytes", factor: inFlight, right: "in_flight_bytes", drops: []string{"in_flight_bytes"}},
	{left: "frame_bps", factor: agree, right: "frames_bps", drops: []string{"frames"}},
	{left: "frames_bps", factor: agree, right: "frame_bps", drops: []string{"frames"}},
}

// gridRelations are relations between the figures of a sweep's cell, its runs and its path. product_bytes is the path's
// capacity times its round trip. flight_bytes is the cell's goodput times the round trip. A system grants half of what
// was requested or more, so a knee is at most twice the BDP.
var gridRelations = []relation{
	{left: "goodput_bps", factor: agree, right: "run_most_bps", drops: []string{"goodput_bps"}},
	{left: "run_least_bps", factor: agree, right: "goodput_bps", drops: []string{"goodput_bps"}},
	{left: "interval_low_bps", factor: agree, right: "goodput_bps", drops: []string{"interval_bps"}},
	{left: "goodput_bps", factor: agree, right: "interval_high_bps", drops: []string{"interval_bps"}},
	{left: "goodput_bps", factor: agree, right: "capacity_bps", drops: []string{"capacity_bps"}},
	{left: "predicted_bps", factor: agree, right: "capacity_bps", drops: []string{"goodput_bps"}},
	{left: "predicted_high_bps", factor: agree, right: "capacity_bps", drops: []string{"interval_bps"}},
	{left: "bdp_bytes", factor: agree, right: "product_bytes", drops: []string{"bdp_bytes"}},
	{left: "product_bytes", factor: agree, right: "bdp_bytes", drops: []string{"bdp_bytes"}},
	{left: "knee_send_bytes", factor: threshold.QueuedMax.Value, right: "bdp_bytes", drops: []string{"knee_send"}},
	{left: "knee_receive_bytes", factor: threshold.QueuedMax.Value, right: "bdp_bytes", drops: []string{"knee_receive"}},
	{left: "knee_send_bytes", factor: agree, right: "send_most_bytes", drops: []string{"knee_send"}},
	{left: "knee_receive_bytes", factor: agree, right: "receive_most_bytes", drops: []string{"knee_receive"}},
	{left: "flight_bytes", factor: inFlight, right: "sent_effective_bytes", drops: []string{"send_buffer"}},
	{left: "flight_bytes", factor: inFlight, right: "received_effective_bytes", drops: []string{"receive_buffer"}},
}

// wayRelations are relations between the figures of one of two compared paths, and of both. most_factor is the greatest
// ratio of two of their transfers, least_factor the smallest one.
var wayRelations = []relation{
	{left: "goodput_bps", factor: agree, right: "run_most_bps", drops: []string{"goodput_bps"}},
	{left: "run_least_bps", factor: agree, right: "goodput_bps", drops: []string{"goodput_bps"}},
	{left: "interval_low_bps", factor: agree, right: "goodput_bps", drops: []string{"interval_bps"}},
	{left: "goodput_bps", factor: agree, right: "interval_high_bps", drops: []string{"interval_bps"}},
	{left: "rtt_min_s", factor: threshold.RTTScatter.Value, right: "rtt_mean_s", drops: []string{"rtt_mean_s"}},
	{left: "mss_bytes", factor: 1, right: "path_mtu_bytes", drops: []string{"path_mtu_bytes"}},
	{left: "retransmitted_ratio", factor: agree, right: "1", drops: []string{"retransmitted_ratio"}},
	{left: "near_cpu_ratio", factor: agree, right: "1", drops: []string{"near_cpu_ratio"}},
	{left: "far_cpu_ratio", factor: agree, right: "1", drops: []string{"far_cpu_ratio"}},
	{left: "factor", factor: agree, right: "most_factor", drops: []string{"factor"}},
	{left: "least_factor", factor: agree, right: "factor", drops: []string{"factor"}},
	{left: "factor_low", factor: 1, right: "factor", drops: []string{"factor_interval"}},
	{left: "factor", factor: 1, right: "factor_high", drops: []string{"factor_interval"}},
	{left: "explained_low", factor: 1, right: "explained_high", drops: []string{"explanation"}},
}

// predictionRelations are relations between the figures of a prediction. product_bytes is the path's rate times its
// round trip, gained_bps the goodput times the gain, flight_bytes a connection's goodput times the round trip, and
// window_rate_bps the rate of all connections by their windows.
var predictionRelations = []relation{
	{left: "goodput_high_bps", factor: agree, right: "rate_bps", drops: []string{"goodput"}},
	{left: "goodput_low_bps", factor: 1, right: "goodput_bps", drops: []string{"goodput"}},
	{left: "goodput_bps", factor: 1, right: "goodput_high_bps", drops: []string{"goodput"}},
	{left: "next_low_bps", factor: 1, right: "next_bps", drops: []string{"next"}},
	{left: "next_bps", factor: 1, right: "next_high_bps", drops: []string{"next"}},
	{left: "goodput_bps", factor: 1, right: "next_bps", drops: []string{"next"}},
	{left: "time_low_s", factor: 1, right: "time_s", drops: []string{"time"}},
	{left: "time_s", factor: 1, right: "time_high_s", drops: []string{"time"}},
	{left: "bdp_bytes", factor: agree, right: "product_bytes", drops: []string{"bdp_bytes"}},
	{left: "gained_bps", factor: agree, right: "next_bps", drops: []string{"gain"}},
	{left: "next_bps", factor: agree, right: "gained_bps", drops: []string{"gain"}},
	{left: "flight_bytes", factor: agree, right: "window_bytes", drops: []string{"window_bytes"}},
	{left: "goodput_bps", factor: agree, right: "cap_bps", drops: []string{"cap"}},
	{left: "line_cap_bps", factor: 1, right: "rate_bps", drops: []string{"cap"}},
	{left: "window_cap_bps", factor: agree, right: "window_rate_bps", drops: []string{"cap"}},
}
