package record

import "time"

// PageTest is the object that the page's API returns for a test that was started there: the running one, else the last.
type PageTest struct {
	Header
	State   TestState  `json:"state"`
	PathKey string     `json:"path_key,omitempty"`
	Far     string     `json:"peer,omitempty"`
	BeganAt *time.Time `json:"began_at,omitempty"`
	// Direction, AtS and GoodputBps are of the newest interval of the transfer that runs.
	Direction  string   `json:"direction,omitempty"`
	AtS        *float64 `json:"at_s,omitempty"`
	GoodputBps *float64 `json:"goodput_bps,omitempty"`
	// Results is how many there are of it, and Said what the newest led to.
	Results int      `json:"results"`
	Said    string   `json:"said,omitempty"`
	Error   *Failure `json:"error,omitempty"`
}

// TestState is how far a test is.
type TestState string

// The closed list.
const (
	NoTest      TestState = "none"
	TestRuns    TestState = "running"
	TestIsDone  TestState = "done"
	TestStopped TestState = "stopped"
	TestFailed  TestState = "failed"
)
