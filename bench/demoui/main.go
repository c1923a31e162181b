// Command demoui makes a history for `make demo-ui`: real measurements in the lab of this
// machine, made one after another now, their dates spread over the last two weeks. The page
// and every result's labels say so.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

const (
	days    = 14
	aDay    = 4 // results
	atOnce  = 2 // labs
	notice  = "A demonstration: measured in the lab of this machine just now, the dates shifted over the last two weeks."
	shifted = "shifted"
)

// paths are what is measured: a lab for each result, by its number.
var paths = map[string]func(i int) []string{
	// the evenings are crowded, and on the tenth day somebody fixes a buffer
	"lab: the office": func(i int) []string {
		link := "lab:rate=40mbit,rtt=30ms"
		if i%aDay == 3 {
			link = "lab:rate=29mbit,rtt=30ms"
		}
		if i >= 9*aDay {
			return []string{link, "--receive-buffer", "64KiB"}
		}
		return []string{link}
	},
	// it goes another way from the sixth day on
	"lab: the other site": func(i int) []string {
		if i >= 5*aDay {
			return []string{"lab:rate=30mbit,rtt=62ms"}
		}
		return []string{"lab:rate=30mbit,rtt=24ms"}
	},
	// a line that begins to lose, and is mended
	"lab: the radio link": func(i int) []string {
		if i >= 6*aDay && i < 11*aDay {
			return []string{"lab:rate=20mbit,rtt=40ms,loss=1%"}
		}
		return []string{"lab:rate=20mbit,rtt=40ms"}
	},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "demoui:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	program := flag.String("program", "../bin/fullpipe", "the fullpipe to measure with")
	noOpen := flag.Bool("no-open", false, "open no browser")
	flag.Parse()
	dir, err := os.MkdirTemp("", "fullpipe-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	full, err := filepath.Abs(*program)
	if err != nil {
		return err
	}
	d := demo{program: full, env: append(os.Environ(), "FULLPIPE_HISTORY="+dir, "FULLPIPE_CONFIG="),
		end: time.Now().UTC()}
	if err := d.measureAll(ctx); err != nil {
		return err
	}
	load := exec.CommandContext(ctx, full, "history", "import", "-")
	load.Env, load.Stdin, load.Stderr = d.env, &d.documents, os.Stderr
	if err := load.Run(); err != nil {
		return err
	}
	args := []string{"ui", "--note", notice}
	if *noOpen {
		args = append(args, "--no-open")
	}
	page := exec.Command(full, args...) // Ctrl-C reaches it too
	page.Env, page.Stdout, page.Stderr = d.env, os.Stdout, os.Stderr
	return page.Run()
}

// demo gathers what is measured.
type demo struct {
	program string
	env     []string
	end     time.Time

	mu        sync.Mutex   // guards documents and done
	documents bytes.Buffer // one after another
	done      int
}

func (d *demo) measureAll(ctx context.Context) error {
	type job struct {
		far  string
		args []string
		i    int
	}
	jobs := make(chan job)
	var workers sync.WaitGroup
	failed := make(chan error, atOnce)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range atOnce {
		workers.Go(func() {
			for j := range jobs {
				if err := d.measure(ctx, j.far, j.args, j.i); err != nil {
					failed <- fmt.Errorf("%s: %w", j.far, err)
					stop()
					return
				}
			}
		})
	}
	for i := range days * aDay {
		for far, args := range paths {
			select {
			case jobs <- job{far, args(i), i}:
			case <-ctx.Done():
			}
		}
	}
	close(jobs)
	workers.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return ctx.Err()
	}
}

// measure makes one result and gives it its date.
func (d *demo) measure(ctx context.Context, far string, args []string, i int) error {
	alone, err := os.MkdirTemp("", "fullpipe-demo-one-") // a separate history, because results include samples
	if err != nil {
		return err
	}
	defer os.RemoveAll(alone)
	var out []byte
	for _, line := range [][]string{append([]string{"measure", "--record", "--json", "--quiet", "--time", "1s",
		"--label", `"link=` + args[0] + `"`, "--label", "dates=" + shifted}, args...), {"history", "export"}} {
		cmd := exec.CommandContext(ctx, d.program, line...)
		cmd.Env = slices.Concat(d.env, []string{"FULLPIPE_HISTORY=" + alone})
		if out, err = cmd.Output(); err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return fmt.Errorf("%w: %s", err, exit.Stderr)
			}
			return err
		}
	}
	var doc map[string]any
	if err := json.Unmarshal(out, &doc); err != nil {
		return err
	}
	at := d.end.Add(-time.Duration(days*aDay-i) * 24 * time.Hour / aDay)
	var random [10]byte
	copy(random[:], fmt.Sprintf("%-6.6s%04d", far[len("lab: the "):], i)) // ids differ in what pages show of them
	doc["id"], doc["path_key"], doc["peer"] = record.NewID(at, random), record.SeriesID{Far: far}.Key(), far
	doc["started_at"], doc["ended_at_ns"], doc["origin"] = at.Format(time.RFC3339), at.Add(time.Second).UnixNano(),
		record.Scheduled
	line, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.documents.Write(append(line, '\n'))
	d.done++
	fmt.Fprintf(os.Stderr, "\rmeasured %d of %d", d.done, days*aDay*len(paths))
	if d.done == days*aDay*len(paths) {
		fmt.Fprintln(os.Stderr)
	}
	return nil
}
