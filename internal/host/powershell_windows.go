package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// powershell runs a script and returns its output. The timeout is 1 min, because the first cmdlet of a session loads
// its module.
func powershell(script string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	text := toUTF16(script)
	cmd := exec.CommandContext(ctx, "powershell.exe", "-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy",
		"Bypass",
		"-OutputFormat", "Text", "-EncodedCommand", base64.StdEncoding.EncodeToString(text[:len(text)-2]))
	cmd.Env = secret.Without(os.Environ())
	cmd.WaitDelay = time.Second
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) && problems.Len() > 0 {
		return nil, fmt.Errorf("powershell: %s", firstLine(problems.String()))
	}
	if err != nil {
		return nil, fmt.Errorf("powershell: %w", err)
	}
	return out, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}
