package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Exit statuses of the contract. lab and exec pass on their command's own.
const (
	statusDone        = 0
	statusFailed      = 1
	statusUsage       = 2
	statusNo          = 3 // done, but the answer is "no"
	statusInterrupted = 130
)

// usageError is a bad argument: which, what was wrong and what would be right.
type usageError struct{ argument, message, try string }

func (e *usageError) Error() string {
	if e.argument == "" {
		return e.message
	}
	return e.argument + ": " + e.message
}

// exitStatus ends a command whose output is already written.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// statusError is a failure with an exit status of its own.
type statusError struct {
	error
	status int
}

func (e *statusError) Unwrap() error { return e.error }

func flagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return &usageError{"--" + value.GetFlag().Name, plainFlag(value), cmd.CommandPath() + " --help"}
	}
	if cmd.Name() == iperf3Name { // failAsIperf3 puts it in iperf3's words
		return &usageError{cmd.CommandPath(), err.Error(), cmd.CommandPath() + " --help"}
	}
	usage := optionError(cmd, err.Error())
	if ours := ourWord(err); ours != "" && cmd.Name() == "measure" {
		usage.message = "is iperf3's"
		usage.try = ours
	}
	return usage
}

// finish reports a command's error where its user looks for it and chooses the status.
func finish(ctx context.Context, cmd *cobra.Command, args []string, err error, std streams) int {
	var own exitStatus
	if err == nil {
		return statusDone
	}
	if errors.As(err, &own) {
		return int(own)
	}
	err = argumentError(cmd, err)
	failure, status := describe(ctx, err)
	if cmd.Name() == iperf3Name {
		return failAsIperf3(err, failure, wantsJSON(cmd) || asksJSON(args), std)
	}
	if wantsJSON(cmd) || asksJSON(args) {
		if err := printObject(cmd, std.out, &record.CommandFailed{Header: newHeader(cmd), Error: &failure}); err != nil {
			return statusFailed
		}
		return status
	}
	fmt.Fprintln(std.err, "fullpipe: "+failureText(failure))
	return status
}

// describe turns an error into what its user reads and the status.
func describe(ctx context.Context, err error) (record.Failure, int) {
	failure := record.Failure{Code: codeOf(err), Message: message(err)}
	status := statusFailed
	var usage *usageError
	var withStatus *statusError
	var hint interface{ Try() string }
	switch {
	case errors.As(err, &usage) && ctx.Err() == nil: // what could not be read for an interrupt is no usage's fault
		failure = record.Failure{Code: "usage", Argument: usage.argument, Message: usage.message, Try: usage.try}
		status = statusUsage
	case ctx.Err() != nil:
		failure = record.Failure{Code: "interrupted", Message: "interrupted"}
		status = statusInterrupted
	}
	if errors.As(err, &withStatus) {
		status = withStatus.status
	}
	if errors.As(err, &hint) {
		failure.Try = hint.Try()
	}
	return failure, status
}

// message is an error on one line, also where several were joined.
func message(err error) string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || !strings.Contains(err.Error(), "\n") {
		return plain(err)
	}
	var parts []string
	for _, e := range joined.Unwrap() {
		parts = append(parts, message(e))
	}
	return strings.Join(parts, "; ")
}

// asksJSON looks for --json among arguments that could not all be parsed.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "-J") || slices.Contains(args, "--json-stream")
}

func wantsJSON(cmd *cobra.Command) bool {
	v, err := cmd.Flags().GetBool("json")
	return err == nil && v || wantsStream(cmd)
}
