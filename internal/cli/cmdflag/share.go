package cmdflag

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Share is a share on the command line, written as 5%. A bare number other than 0 may be
// meant as a share or in percent, so it is refused with both readings.
type Share float64

func (p *Share) Set(text string) error {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return errors.New("not a share (write it as 5%)")
	}
	if !isPercent && v > 0 {
		return fmt.Errorf("%s is %g %% as a share, or meant as %s %%: write %s%% or %g%%", number, 100*v, number, number,
			100*v)
	}
	if isPercent {
		v /= 100
	}
	*p = Share(v)
	return nil
}

func (p *Share) String() string {
	if *p == 0 {
		return ""
	}
	return fmt.Sprintf("%g%%", 100*float64(*p))
}

func (p *Share) Type() string { return "share" }
