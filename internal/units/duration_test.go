package units

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDuration_JSON(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{{0, "0"}, {40 * time.Millisecond, "0.04"}, {1, "1e-9"}, {90*time.Minute + 123456789, "5400.123456789"},
		{-time.Second, "-1"}} {
		text, err := json.Marshal(Duration(tt.d))
		if err != nil || string(text) != tt.want {
			t.Errorf("%v: %s, want %s; %v", tt.d, text, tt.want, err)
		}
		var back Duration
		if err := json.Unmarshal(text, &back); err != nil || time.Duration(back) != tt.d {
			t.Errorf("%s: %d ns, want %d; %v", text, back, tt.d, err)
		}
	}
	for _, text := range []string{"1e10", "-1e300", `"1s"`} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s was read as %d ns", text, d)
		}
	}
}
