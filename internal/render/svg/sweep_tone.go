package svg

import (
	"fmt"
	"math"
)

// rgb is a colour, each part 0 to 1.
type rgb [3]float64

// ramp is a row of colours from low to high.
type ramp []rgb

// The heat map's and the curves' colours on light and on dark paper. Each runs evenly in
// lightness, so that it survives print without colours.
var (
	heatLight  = ramp{hex(0xf1f5f9), hex(0xc4dcea), hex(0x74b3d3), hex(0x2a7bb0), hex(0x0d4a82)}
	heatDark   = ramp{hex(0x1d2631), hex(0x1d4463), hex(0x2673a0), hex(0x45a7cf), hex(0xa5e3f5)}
	linesLight = ramp{hex(0xd08a00), hex(0xc9503c), hex(0x9b3a8c), hex(0x4a57b5), hex(0x007f8c)}
	linesDark  = ramp{hex(0xffcf70), hex(0xff9a7a), hex(0xe58ad8), hex(0xa9a2ff), hex(0x5fd6e0)}
)

func hex(v int) rgb { return rgb{float64(v>>16) / 255, float64(v>>8&255) / 255, float64(v&255) / 255} }

// at is the colour at a share (0 to 1) of the ramp.
func (r ramp) at(t float64) rgb {
	t = math.Min(math.Max(t, 0), 1) * float64(len(r)-1)
	i := min(int(t), len(r)-2)
	var c rgb
	for k := range c {
		c[k] = r[i][k] + (r[i+1][k]-r[i][k])*(t-float64(i))
	}
	return c
}

func (c rgb) String() string {
	part := func(v float64) int { return int(math.Round(255 * v)) }
	return fmt.Sprintf("#%02x%02x%02x", part(c[0]), part(c[1]), part(c[2]))
}

// luminance is WCAG 2's relative luminance.
func (c rgb) luminance() float64 {
	sum := 0.0
	for k, weight := range [3]float64{0.2126, 0.7152, 0.0722} {
		v := c[k] / 12.92
		if c[k] > 0.04045 {
			v = math.Pow((c[k]+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

// on is the colour of text that is read best on it.
func (c rgb) on() string {
	dark := rgb{0.07, 0.1, 0.14}
	if (c.luminance()+0.05)/(dark.luminance()+0.05) > 1.05/(c.luminance()+0.05) {
		return dark.String()
	}
	return "#ffffff"
}

// heatTone is a cell's colours in both schemes, as the page's style sheet takes them.
func heatTone(share float64) string {
	light := heatLight.at(share)
	dark := heatDark.at(share)
	return fmt.Sprintf("--light:%s;--on-light:%s;--dark:%s;--on-dark:%s", light, light.on(), dark, dark.on())
}

// lineTone is the colour of line i of n.
func lineTone(i, n int) string {
	share := 1.0
	if n > 1 {
		share = float64(i) / float64(n-1)
	}
	return fmt.Sprintf("--light:%s;--dark:%s", linesLight.at(share), linesDark.at(share))
}
