package text

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// capturedSettingsText formats the settings of one target, one a line.
func capturedSettingsText(s *record.CapturedSettings) (lines []string) {
	for _, one := range s.Settings {
		lines = append(lines, fmt.Sprintf("%s at %s: %s = %s", s.Target, s.At, one.Name, one.Value))
	}
	return lines
}
