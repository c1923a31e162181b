package text

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// capturedSettingsText is the settings of one target in a line for each.
func capturedSettingsText(s *record.CapturedSettings) (lines []string) {
	for _, one := range s.Settings {
		lines = append(lines, fmt.Sprintf("%s at %s: %s = %s", s.Target, s.At, one.Name, one.Value))
	}
	return lines
}
