//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
)

func sorted(all []farEnd) []farEnd {
	slices.SortFunc(all, func(a, b farEnd) int { return strings.Compare(a.name, b.name) })
	return all
}

func jsonText(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

// begun plays an iperf3 server until it has the parameters.
func begun(then func(c *net.TCPConn)) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		if _, err := io.ReadFull(c, make([]byte, iperf3.CookieSize)); err != nil {
			return
		}
		iperf3.WriteState(c, iperf3.ParamExchange)
		if _, err := iperf3.ReadFrame(c, iperf3.MaxParams); err != nil {
			silent(c) // a data connection
			return
		}
		then(c)
		silent(c)
	}
}

// states sends these states one after another.
func states(all ...iperf3.State) func(*net.TCPConn) {
	return begun(func(c *net.TCPConn) {
		for _, s := range all {
			iperf3.WriteState(c, s)
		}
	})
}

// exchanging plays a test up to the results and replies to the client's results with this frame.
func exchanging(frame []byte) func(*net.TCPConn) {
	return begun(func(c *net.TCPConn) {
		for _, s := range []iperf3.State{iperf3.CreateStreams, iperf3.TestStart, iperf3.TestRunning} {
			iperf3.WriteState(c, s)
		}
		for s, err := iperf3.ReadState(c); s != iperf3.TestEnd; s, err = iperf3.ReadState(c) {
			if err != nil {
				return
			}
		}
		iperf3.WriteState(c, iperf3.ExchangeResults)
		if _, err := iperf3.ReadFrame(c, iperf3.MaxServerResults); err != nil {
			return
		}
		c.Write(frame)
		iperf3.WriteState(c, iperf3.DisplayResults)
	})
}

func framed(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func results(more, streams string) []byte {
	return framed(`{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":0,` + more +
		`"streams":[` + streams + `]}`)
}

func iperf3Servers() (all []farEnd) {
	quoted := jsonText(attack)
	stream := `{"id":1,"bytes":1000,"retransmits":-1,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1}`
	for name, play := range map[string]func(*net.TCPConn){
		"silent": func(c *net.TCPConn) { silent(c) },
		"closes": func(c *net.TCPConn) {},
		"resets": func(c *net.TCPConn) { c.SetLinger(0) },
		"banner": func(c *net.TCPConn) { io.WriteString(c, attack); silent(c) },
		"denies": func(c *net.TCPConn) { iperf3.WriteState(c, iperf3.AccessDenied); silent(c) },
		"error": func(c *net.TCPConn) {
			c.Write([]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff,
				0xff})
			silent(c)
		},
		"state-unknown":      func(c *net.TCPConn) { c.Write([]byte{77}); silent(c) },
		"state-flood":        begun(func(c *net.TCPConn) { flood(c, bytes.Repeat([]byte{byte(iperf3.TestRunning)}, 4096)) }),
		"parameters-ignored": states(),
		"streams-forever":    states(iperf3.CreateStreams),
		"terminates":         states(iperf3.ServerTerminate),
		"starts-twice":       states(iperf3.CreateStreams, iperf3.TestStart, iperf3.TestStart, iperf3.TestStart),
		"done-at-once":       states(iperf3.CreateStreams, iperf3.Done),
		"results-of-4-GB":    exchanging([]byte{0xff, 0xff, 0xff, 0xff, '{'}),
		"results-cut":        exchanging(framed(strings.Repeat("{", 1000))[:500]),
		"results-no-json":    exchanging(framed("\x1b[2J\nFORGED")),
		"results-types":      exchanging(framed(`{"cpu_util_total":"x","streams":7,"congestion_used":{}}`)),
		"results-absurd":     exchanging(results("", strings.Replace(stream, "1000", "1e18", 1))),
		"results-negative":   exchanging(results("", strings.Replace(stream, "1000", "-1", 1))),
		"results-streams":    exchanging(results("", strings.Repeat(stream+",", 5000)+stream)),
		"results-escapes":    exchanging(results(`"congestion_used":`+quoted+`,"server_output_text":`+quoted+`,`, stream)),
		"results-deep":       exchanging(framed(strings.Repeat("[", 1_000_000))),
	} {
		all = append(all, farEnd{name: "iperf3-" + name, kind: "iperf3", server: play})
	}
	return sorted(all)
}

// flood repeats a text until a write fails.
func flood(c io.Writer, text []byte) {
	for {
		if _, err := c.Write(text); err != nil {
			return
		}
	}
}
