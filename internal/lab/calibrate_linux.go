package lab

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

// What a round trip takes on this machine besides what the link is asked for: each way a
// device is read, a timer fires and a program wakes, and no clock here sees it. When a lab
// starts, a few round trips of its own tell how much that is, and from then on packets go
// half of it before they are due.

// calibration is what came of it.
type calibration struct {
	floor time.Duration // of a round trip on a link without delay: nothing asked for comes out as less
	early int64         // ns before it is due that a packet goes
}

const (
	// usualEarly is for a machine whose hosts cannot echo: what an idle one was seen to need.
	usualEarly = 70_000 // ns
	// mostEarly bounds what a busy moment may make of it.
	mostEarly = 500_000 // ns
	// probeDelay is the largest delay that it is tried with. Processors sleep the deeper
	// the longer they are let, but from tick on (a link in use wakes that often) no more.
	probeDelay  = time.Millisecond
	probeEchoes = 12
	// probePause is how long nothing goes between echoes: what follows at once finds everything awake.
	probePause = 2 * time.Millisecond
	// A round of echoes tells the floor when another one tells the same: what holds up
	// this machine for a moment holds up one round, and only ever makes it longer.
	probeRounds = 6
	roundsAgree = 25 * time.Microsecond
)

// calibrate has the link carry echoes between the hosts and tells it what they showed.
func (e *inside) calibrate(p *link.Path) error {
	c := calibration{early: usualEarly}
	delay := min(p.RTT/2, probeDelay)
	least, err := e.echoes(0)
	if err == nil {
		c.floor = least
		var with time.Duration
		if with, err = e.echoes(delay); err == nil && delay > 0 {
			c.early = min(max(0, int64(with-2*delay)/2), mostEarly)
		}
	}
	if err != nil && !errors.Is(err, errNoEcho) {
		return err
	}
	_, err = e.link.ask(request{Op: opCarry, Early: c.early, Floor: c.floor})
	return err
}

var errNoEcho = errors.New("no echo")

// echoes answers what a round trip takes over a link of that delay each way: the least of
// a few rounds, of which two have to agree.
func (e *inside) echoes(delay time.Duration) (time.Duration, error) {
	if _, err := e.link.ask(request{Op: opProbe, Delay: delay}); err != nil {
		return 0, err
	}
	var rounds []time.Duration
	for len(rounds) < probeRounds {
		usual, err := e.round(delay)
		if err != nil {
			return 0, err
		}
		rounds = append(rounds, usual)
		slices.Sort(rounds)
		if len(rounds) > 1 && rounds[1]-rounds[0] <= roundsAgree {
			break
		}
	}
	return rounds[0], nil
}

// round is the median of some round trips, one after the other, so that half of those to come
// take no longer than what was asked for.
func (e *inside) round(delay time.Duration) (usual time.Duration, err error) {
	var trips []time.Duration
	err = onThread(func() error {
		if err := unix.Setns(e.hosts[near].namespace, unix.CLONE_NEWNET); err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		if err != nil {
			return errNoEcho
		}
		defer unix.Close(fd)
		unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		patience := unix.NsecToTimeval(int64(2*delay + 100*time.Millisecond))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
			return err
		}
		to := &unix.SockaddrInet4{Addr: FarAddr.As4()}
		for i := range probeEchoes + 1 {
			request := []byte{8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // ICMP echo request; the kernel fills in the rest
			binary.BigEndian.PutUint16(request[6:], uint16(i))
			time.Sleep(probePause)
			start := time.Now()
			if err := unix.Sendto(fd, request, 0, to); err != nil {
				return errNoEcho
			}
			var back [64]byte
			if n, _, err := unix.Recvfrom(fd, back[:], 0); err != nil || n < 8 || binary.BigEndian.Uint16(back[6:]) != uint16(
				i) {
				return errNoEcho
			}
			if i > 0 { // the first one finds caches cold
				trips = append(trips, time.Since(start))
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	slices.Sort(trips)
	return trips[len(trips)/2], nil
}

// probe replaces the lanes by those of a link that only delays.
func (c *carrier) probe(delay time.Duration) {
	bare := link.Path{Up: link.Config{Delay: delay}, Down: link.Config{Delay: delay}}
	up, down := bare.Lanes()
	c.use(up, down, nil, 0)
}

// use has both directions go on with other lanes, and forget what they counted. What was
// under way is lost: nothing is.
func (c *carrier) use(up, down *link.Lane, t *tap, early int64) {
	for d, lane := range map[*duct]*link.Lane{c.up: up, c.down: down} {
		d.loop.do(func() {
			d.lane = lane
			d.tap = t
			d.late = tally{}
			d.loop.early = early
			d.loop.late.stalls = stalls{}
		})
	}
}
