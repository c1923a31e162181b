package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// percent is a share on the command line, written as 5% or 0.05.
type percent float64

func (p *percent) Set(text string) error {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return errors.New("not a share (write it as 5% or 0.05)")
	}
	if isPercent {
		v /= 100
	}
	*p = percent(v)
	return nil
}

func (p *percent) String() string {
	if *p == 0 {
		return ""
	}
	return fmt.Sprintf("%g%%", 100*float64(*p))
}

func (p *percent) Type() string { return "share" }
