//go:build linux

package harness

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Programs of the test binary that put a calculable load on a link. They read their settings from the variables named
// here.
const (
	LineAddressVariable = "FULLPIPE_E2E_ADDRESS" // of the far end
	lineRateVariable    = "FULLPIPE_E2E_RATE"    // bit/s of the link
	linePort            = "7"
	// datagramBytes fill an IPv4 packet of 1500, and lineRequest is what each round trip
	// carries there; one byte comes back.
	datagramBytes = 1472
	lineRequest   = 8192
)

// sinkProgram discards what it receives. A client whose first byte is not 0 gets one byte back for each
// lineRequest bytes.
func sinkProgram() error {
	at, err := net.Listen("tcp", net.JoinHostPort("", linePort))
	if err != nil {
		return err
	}
	datagrams, err := net.ListenPacket("udp", net.JoinHostPort("", linePort)) // so that no ICMP comes back
	if err != nil {
		return err
	}
	go io.Copy(io.Discard, datagrams.(*net.UDPConn))
	for {
		c, err := at.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			first := make([]byte, 1)
			if _, err := io.ReadFull(c, first); err != nil {
				return
			}
			if first[0] == 0 {
				io.Copy(io.Discard, c)
				return
			}
			request := make([]byte, lineRequest)
			for {
				if _, err := io.ReadFull(c, request); err != nil {
					return
				}
				if _, err := c.Write(first); err != nil {
					return
				}
			}
		}()
	}
}

// lineDial connects to the sink.
func lineDial() (*net.TCPConn, error) {
	c, err := net.Dial("tcp", net.JoinHostPort(os.Getenv(LineAddressVariable), linePort))
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// sourceProgram sends as fast as the connection allows until it is killed.
func sourceProgram() error {
	c, err := lineDial()
	if err != nil {
		return err
	}
	block := make([]byte, 256<<10)
	for {
		if _, err := c.Write(block); err != nil {
			return err
		}
	}
}

// exchangesProgram makes one request after the other for lineSpan and prints how many were answered a second.
func exchangesProgram() error {
	c, err := lineDial()
	if err != nil {
		return err
	}
	if _, err := c.Write([]byte{1}); err != nil { // Go sets TCP_NODELAY
		return err
	}
	request := make([]byte, lineRequest)
	answer := make([]byte, 1)
	exchange := func() error {
		if _, err := c.Write(request); err != nil {
			return err
		}
		_, err := io.ReadFull(c, answer)
		return err
	}
	for range 3 { // the congestion window opens
		if err := exchange(); err != nil {
			return err
		}
	}
	start := time.Now()
	n := 0
	for time.Since(start) < lineSpan || n < 20 {
		if err := exchange(); err != nil {
			return err
		}
		n++
	}
	fmt.Println(float64(n) / time.Since(start).Seconds())
	return nil
}

// lineSpan is how long exchangesProgram measures.
const lineSpan = 5 * time.Second

// pacedProgram sends datagrams at 95 % of the link's rate until it is killed. After a delay it does not catch up:
// the burst would be its own, not the link's.
func pacedProgram() error {
	rate, err := strconv.ParseFloat(os.Getenv(lineRateVariable), 64)
	if err != nil {
		return err
	}
	to := os.Getenv(LineAddressVariable)
	c, err := net.Dial("udp", net.JoinHostPort(to, linePort))
	if err != nil {
		return err
	}
	payload := datagramBytes
	if bytes.ContainsRune([]byte(to), ':') {
		payload -= 20 // IPv6's header is longer
	}
	datagram := make([]byte, payload)
	const packet, share = 1500, 0.95
	each := packet * 8 / (share * rate) // s
	burst := max(1, int(0.3e-3/each))
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	step := time.Duration(each * float64(burst) * 1e9)
	for due := time.Now(); ; due = due.Add(step) {
		if behind := time.Since(due); behind < 0 {
			wait := unix.NsecToTimespec(-int64(behind))
			unix.Nanosleep(&wait, nil)
		} else {
			due = time.Now()
		}
		for range burst {
			if _, err := c.Write(datagram); err != nil {
				return err
			}
		}
	}
}

// spinProgram keeps a CPU busy until it is killed.
func spinProgram() error {
	for i := uint64(1); i != 0; i++ {
	}
	return nil
}
