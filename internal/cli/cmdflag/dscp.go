package cmdflag

import (
	"fmt"
	"strconv"
	"strings"
)

// DSCPNames are DSCPs by name (RFC 2474, 2597, 3246, 5865; the last three are RFC 1349's, as
// iperf3 has them).
var DSCPNames = map[string]int{"af11": 10, "af12": 12, "af13": 14, "af21": 18, "af22": 20, "af23": 22, "af31": 26,
	"af32": 28, "af33": 30, "af41": 34, "af42": 36, "af43": 38, "cs0": 0, "cs1": 8, "cs2": 16, "cs3": 24, "cs4": 32,
	"cs5": 40, "cs6": 48, "cs7": 56, "ef": 46, "va": 44, "lowdelay": 4, "throughput": 2, "reliability": 1}

// DSCP is a DSCP, by its number (as C reads it) or its name.
type DSCP int

func (d *DSCP) String() string { return strconv.Itoa(int(*d)) }

func (d *DSCP) Type() string { return "class" }

func (d *DSCP) Set(text string) error {
	if v, known := DSCPNames[strings.ToLower(text)]; known {
		*d = DSCP(v)
		return nil
	}
	n, err := strconv.ParseInt(text, 0, 32)
	if err != nil || n < 0 || n > 63 {
		return fmt.Errorf("%q is no class: 0 to 63, or a name as af11, cs1 or ef", text)
	}
	*d = DSCP(n)
	return nil
}
