package bpf_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
	"github.com/fullpipe-net/fullpipe/internal/segments"
	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// object is a program, a map or a link by its line in /proc/PID/fdinfo.
type object struct {
	kind string // prog_id, map_id, link_id
	id   uint32
}

// objectsOf returns the programs, maps and links that a process has open.
func objectsOf(t *testing.T, pid int) (all []object) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("process %d has no descriptors: %v", pid, err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // closed meanwhile
		for line := range strings.Lines(string(text)) {
			kind, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); err == nil &&
				slices.Contains([]string{"prog_id", "map_id", "link_id"}, kind) {
				all = append(all, object{kind, uint32(id)})
				if kind == "link_id" {
					break // its program's follows
				}
			}
		}
	}
	return all
}

// exists reports whether the kernel still has an object.
func (o object) exists(t *testing.T) bool {
	var err error
	switch o.kind {
	case "prog_id":
		p, failed := ebpf.NewProgramFromID(ebpf.ProgramID(o.id))
		_, err = p.Close(), failed
	case "map_id":
		m, failed := ebpf.NewMapFromID(ebpf.MapID(o.id))
		_, err = m.Close(), failed
	case "link_id":
		l, failed := link.NewFromID(link.ID(o.id))
		if failed == nil {
			_ = l.Close()
		}
		err = failed
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%+v: %v", o, err)
	}
	return err == nil
}

const keepsBPF = "FULLPIPE_TEST_KEEPS_BPF"

// keepOpen opens programs and waits to be killed.
func keepOpen() {
	moved, err := sockdiag.OpenMoved(sockdiag.Connected)
	var tasks *sockdiag.Tasks
	if err == nil {
		tasks, err = sockdiag.OpenTasks()
	}
	var followed *segments.Watch
	if err == nil {
		followed, err = segments.Open()
	}
	fmt.Println("open", err)
	time.Sleep(time.Minute)
	runtime.KeepAlive([]any{moved, tasks, followed})
}

func TestMain(m *testing.M) {
	if os.Getenv(keepsBPF) != "" {
		keepOpen()
		return
	}
	os.Exit(m.Run())
}

func TestSet_ReleasesEverything(t *testing.T) {
	testenv.Need(t, testenv.BPF)
	moved := must.Get(sockdiag.OpenMoved(sockdiag.Connected))(t)
	open := objectsOf(t, os.Getpid())
	must.Do(t, errors.Join(moved.Close(), moved.Close()))
	checkReleased(t, open, 3)
}

func TestSegments_ReleaseEverything(t *testing.T) {
	testenv.Need(t, testenv.BPF)
	followed, err := segments.Open()
	if err != nil {
		t.Fatal(err)
	}
	open := objectsOf(t, os.Getpid())
	if err := errors.Join(followed.Close(), followed.Close()); err != nil {
		t.Fatal(err)
	}
	checkReleased(t, open, 8)
}

func TestSet_IsReleasedWithAKilledProcess(t *testing.T) {
	testenv.Need(t, testenv.BPF)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), keepsBPF+"=1")
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready, err := bufio.NewReader(out).ReadString('\n')
	open := objectsOf(t, child.Process.Pid)
	_ = child.Process.Kill()
	_ = child.Wait()
	if err != nil || ready != "open <nil>\n" {
		t.Fatalf("%q, %v", ready, err)
	}
	checkReleased(t, open, 13)
}

// checkReleased waits until the kernel has freed the objects: it frees some of them in the background.
func checkReleased(t *testing.T, open []object, want int) {
	t.Helper()
	if len(open) != want {
		t.Errorf("%d programs, maps and links were open, want %d: %v", len(open), want, open)
	}
	for _, o := range open {
		for end := time.Now().Add(10 * time.Second); o.exists(t); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("the kernel still has %+v", o)
				break
			}
		}
	}
}

func TestPrograms_AreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, p := range bpf.Programs() {
		if len(p.Name) > 15 || names[p.Name] || p.Hook == "" || p.Reads == "" || p.CostNS < 0 || p.Needs == "" {
			t.Errorf("%+v", p)
		}
		names[p.Name] = true
	}
}
