//go:build linux

package live

import (
	"fmt"
	"os"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
)

func TestMain(m *testing.M) {
	lab.Engine()
	if os.Getenv("FULLPIPE_BANK") != "1" && os.Getenv(harness.ProgramVariable) == "" {
		fmt.Println("these tests measure: run them with make live")
		return
	}
	harness.Main(m, nil)
}
