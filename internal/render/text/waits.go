package text

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// minWait is the share of the time below which a wait is not printed.
const minWait = 0.01

// waitNames has the words for what a program waits for; %s is its object.
var waitNames = map[string]string{
	"cpu": "on a processor", "run-queue": "waiting for a free processor",
	"quota": "waiting for its CPU quota", "disk": "waiting for %s", "memory": "waiting for memory",
	"network": "waiting for room in the send buffer", "process": "waiting for %s",
	"peer": "waiting for data from %s", "lock": "waiting for a lock",
	"sleep": "waiting for a timer", "unknown": "not known",
}

// unnamed has the objects of a wait whose object is not known.
var unnamed = map[string]string{"disk": "a disk", "process": "another program", "peer": "the far end"}

// Waits formats what a program waited for, the longest first; "" if it was not sampled.
func Waits(all []record.Wait) string {
	total := 0.0
	for i := range all {
		total += all[i].Seconds
	}
	if total == 0 {
		return ""
	}
	var parts []string
	for i := range all {
		if w := &all[i]; w.Share >= minWait {
			parts = append(parts, SecondsText(w.Seconds)+" "+waitText(w))
		}
	}
	return fmt.Sprintf("the program, sampled for %s: %s", SecondsText(total), strings.Join(parts, ", "))
}

func waitText(w *record.Wait) string {
	text := waitNames[w.Kind]
	if strings.Contains(text, "%s") {
		object := w.Object
		if object == "" {
			object = unnamed[w.Kind]
		}
		text = fmt.Sprintf(text, object)
	}
	if w.Operation != "" {
		text += ", " + w.Operation
	}
	if w.Requests > 0 {
		text += fmt.Sprintf(", %s a request", SecondsText(w.RequestMeanS))
	}
	if w.Program != "" {
		text += " (" + w.Program + ")"
	}
	return text
}
