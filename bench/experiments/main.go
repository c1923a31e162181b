package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "experiments:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	program := flag.String("program", "../bin/fullpipe", "the fullpipe to measure with")
	repeats := flag.Int("repeats", 3, "transfers of each cell; the median counts")
	to := flag.String("o", "../docs/experiments.md", "the document to write")
	flag.Parse()
	if *repeats < 1 || flag.NArg() > 0 {
		return errors.New("usage: experiments [-program FILE] [-repeats N] [-o FILE]")
	}
	experiments, err := all()
	if err != nil {
		return err
	}
	progress := io.Discard
	if terminal, err := os.Stderr.Stat(); err == nil && terminal.Mode()&os.ModeCharDevice != 0 {
		progress = os.Stderr
	}
	if err := (runner{*program, *repeats, progress}).run(ctx, experiments); err != nil {
		return err
	}
	f, err := os.Create(*to)
	if err != nil {
		return err
	}
	write(f, experiments, judgePool(experiments[:gatewayTables]), machine(), *repeats)
	return f.Close()
}

// machine returns a line that describes the machine of the measurements.
func machine() string {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		kernel = []byte("unknown")
	}
	return fmt.Sprintf("%d cores, Linux %s", runtime.NumCPU(), strings.TrimSpace(string(kernel)))
}
