package link

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

const (
	minRate  = 100      // bit/s: a full packet takes two minutes
	maxRate  = 1e12     // bit/s
	maxQueue = 64 << 30 // bytes

	maxFactor = 14 // RFC 7323 section 2.3
)

// rateOrUnlimited sets a rate; "unlimited" is 0.
func rateOrUnlimited(v string, to *int64) (err error) {
	*to = 0
	if v != "unlimited" {
		*to, err = rate(v)
	}
	return err
}

func rate(v string) (int64, error) {
	r, err := units.ParseRate(v)
	if err != nil {
		return 0, err
	}
	if r < minRate || r > maxRate {
		return 0, fmt.Errorf("not between 100 bit/s and 1 Tbit/s")
	}
	return int64(math.Round(float64(r))), nil
}

func span(v string, most time.Duration, into *time.Duration) error {
	t, err := units.ParseTime(v)
	if err != nil {
		return err
	}
	if t > most {
		return fmt.Errorf("more than %v", most)
	}
	*into = t
	return nil
}

// probability reads "0.01%". It refuses a bare number other than 0, which may be a share or a percentage.
func probability(v string, into *float64) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(v), "%")
	p, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		p /= 100
	}
	if err != nil || !(p >= 0 && p <= 1) {
		return fmt.Errorf("not a share between 0%% and 100%% (write it as 0.1%%)")
	}
	number = strings.TrimSpace(number)
	if !percent && p > 0 {
		return fmt.Errorf("%s is %g %% as a share, or meant as %s %%: write %s%% or %g%%", number, 100*p, number, number,
			100*p)
	}
	*into = p
	return nil
}

func whole(v string, least, most int, into *int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return fmt.Errorf("not a whole number between %d and %d", least, most)
	}
	*into = n
	return nil
}

// size parses a number of bytes.
func size(v string, least, most int64) (int, error) {
	n, err := units.ParseSize(v)
	if err != nil {
		return 0, err
	}
	if int64(n) < least || int64(n) > most {
		return 0, fmt.Errorf("not between %v and %v", units.Size(least), units.Size(most))
	}
	return int(n), nil
}

// choice sets a switch by the name of its state.
func choice(v string, into *bool, off, on string) error {
	if v != off && v != on {
		return fmt.Errorf("neither %s nor %s", off, on)
	}
	*into = v == on
	return nil
}

func parseQueue(v string) (queueText, error) {
	text := strings.ToLower(strings.TrimSpace(v))
	for _, unit := range []string{"bdp", "packets", "packet", "p"} {
		number, found := strings.CutSuffix(text, unit)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n >= 0 && n <= 1e6) || unit != "bdp" && (n != math.Trunc(n) || n < 1) {
			return queueText{}, fmt.Errorf("not a number of %s", unit)
		}
		if unit != "bdp" {
			unit = "packets"
		}
		return queueText{n, unit}, nil
	}
	size, err := units.ParseSize(text)
	if err != nil {
		return queueText{}, err
	}
	if size > maxQueue {
		return queueText{}, fmt.Errorf("more than 64 GiB")
	}
	return queueText{float64(size), "bytes"}, nil
}
