package paths

import (
	"strconv"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// word follows a word that changes only with the path. Where hosts of one network differ it changes often, and no
// change is certain enough to be reported.
type word struct {
	Is    string    `json:"is,omitempty"`
	Same  int       `json:"same,omitempty"` // windows, WordsBefore at most
	Next  string    `json:"next,omitempty"`
	Run   int       `json:"run,omitempty"` // windows in a row that said Next
	Since time.Time `json:"since,omitzero"`
	Was   string    `json:"was,omitempty"` // before the newest shift, until that is settled
}

func (w *word) known() bool { return w.Same >= threshold.WordsBefore }

func (w *word) add(at time.Time, is string) *Shift {
	switch {
	case is == "":
		return nil
	case w.Is == "":
		w.Is = is
		w.Same = 1
		return nil
	case is == w.Is:
		w.doubt()
		w.Same = min(w.Same+1, threshold.WordsBefore)
		if w.known() {
			w.Was = ""
		}
		return nil
	case is != w.Next:
		w.doubt()
		w.Next = is
		w.Since = at
	}
	w.Run++
	if w.Run < threshold.WordsAfter {
		return nil
	}
	s := &Shift{BeforeWord: w.Is, AfterWord: w.Next, Since: w.Since, Back: w.Next == w.Was}
	switch {
	case s.Back:
		*w = word{Is: w.Next, Same: threshold.WordsBefore}
	case w.known():
		*w = word{Is: w.Next, Same: threshold.WordsAfter, Was: w.Is}
	default:
		*w = word{Is: w.Next, Same: threshold.WordsAfter}
		return nil
	}
	return s
}

// doubt ends a run of another word that came to nothing.
func (w *word) doubt() {
	if w.Run > 0 {
		w.Same = max(w.Same-threshold.WordsDoubt, 0)
	}
	w.Next = ""
	w.Run = 0
}

// number is a word that is a number.
type number struct{ word }

func (n *number) add(at time.Time, is int) *Shift {
	text := ""
	if is > 0 {
		text = strconv.Itoa(is)
	}
	s := n.word.add(at, text)
	if s == nil {
		return nil
	}
	before, _ := strconv.Atoi(s.BeforeWord)
	after, _ := strconv.Atoi(s.AfterWord)
	return &Shift{Before: float64(before), After: float64(after), Since: s.Since, Back: s.Back}
}
