//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// arrived is the first word of a far end that ssh has logged in to.
const arrived = "fullpipe-arrived\n"

func sshPrograms() (all []farEnd) {
	line := func(text string) func(io.Reader, io.Writer, io.Writer) error {
		return func(in io.Reader, out, _ io.Writer) error {
			io.WriteString(out, text)
			io.Copy(io.Discard, in)
			return nil
		}
	}
	for name, play := range map[string]func(in io.Reader, out, errs io.Writer) error{
		"silent": line(""),
		"escapes": func(_ io.Reader, out, errs io.Writer) error {
			io.WriteString(out, attack)
			return fmt.Errorf("%s", attack)
		},
		"arrives-only": line(arrived),
		"long-line": func(_ io.Reader, out, _ io.Writer) error {
			io.WriteString(out, arrived)
			flood(out, []byte(strings.Repeat("x", 4096)))
			return nil
		},
		"lines": func(_ io.Reader, out, _ io.Writer) error {
			io.WriteString(out, arrived)
			flood(out, []byte("x\n"))
			return nil
		},
		"complaints": func(_ io.Reader, _, errs io.Writer) error {
			flood(errs, []byte(strings.Repeat(attack, 100)))
			return nil
		},
		"ready-without-key": line(arrived + `{"event":"ready","listen":"127.0.0.1:1","key":` + jsonText(attack) + "}\n"),
		"ready-elsewhere": line(arrived + `{"event":"ready","listen":"192.0.2.1:99999","key":"` + strings.Repeat("ab",
			32) + "\"}\n"),
		"error-escapes":       line(arrived + `{"error":{"message":` + jsonText(attack) + "}}\n"),
		"says-it-lives-often": func(_ io.Reader, out, _ io.Writer) error { flood(out, []byte(arrived)); return nil },
		"leaves-a-child": func(io.Reader, io.Writer, io.Writer) error {
			child := exec.Command("sleep", "20")
			child.Stdout, child.Stderr = os.Stdout, os.Stderr
			return child.Start()
		},
		"deaf": func(io.Reader, io.Writer, io.Writer) error {
			signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
			<-time.After(20 * time.Second)
			return nil
		},
	} {
		all = append(all, farEnd{name: "ssh-" + name, kind: "ssh", program: play})
	}
	return sorted(all)
}
