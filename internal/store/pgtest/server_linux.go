package pgtest

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// Server is a PostgreSQL server and its directory.
type Server struct {
	dir, bin  string
	attr      *syscall.SysProcAttr // the user that runs the server
	life      io.Closer            // the server stops when this closes
	keeper    *exec.Cmd
	databases atomic.Int64
	options   string // of the server's command line, after those of Restart
}

// keep waits until the other end of its input closes. It then ends the server and its process group and removes the
// directory.
const keep = `cat >/dev/null
trap '' TERM
kill -TERM 0
p=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$p" &&
	while kill -0 "$p" 2>/dev/null; do sleep 0.02; done
while [ -e "$1" ]; do rm -rf "$1" 2>/dev/null || sleep 0.02; done`

// begin starts a server.
func begin(t testing.TB, options string) *Server {
	t.Helper()
	s := &Server{options: options, bin: filepath.Dir(testenv.Program(t, testenv.Postgres)),
		attr: &syscall.SysProcAttr{Setpgid: true}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.dir, err = os.MkdirTemp("/tmp", "fullpipe-pg-") // a socket path must be short
	must(err)
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		account, err := user.Lookup("postgres")
		if err != nil {
			account, err = user.Lookup("nobody")
		}
		must(err)
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		s.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		must(os.Chown(s.dir, uid, gid))
	}
	s.keeper = s.command("sh", "-c", keep, "sh", s.dir)
	s.life, err = s.keeper.StdinPipe()
	must(err)
	must(s.keeper.Start())
	s.attr = &syscall.SysProcAttr{Setpgid: true, Pgid: s.keeper.Process.Pid, Credential: s.attr.Credential}
	s.initialize(t)
	hba := "local all guarded scram-sha-256\nlocal all all trust\n"
	must(os.WriteFile(s.dir+"/data/pg_hba.conf", []byte(hba), 0o600))
	s.Restart(t)
	return s
}

// templateVariable names a directory of cluster files that all servers of a test run share. initdb takes most of
// the start time. The first server writes the directory.
const templateVariable = "FULLPIPE_TEST_CLUSTER"

// initialize makes the files of an empty cluster.
func (s *Server) initialize(t testing.TB) {
	t.Helper()
	template := os.Getenv(templateVariable)
	if _, err := os.Stat(template); err == nil {
		if text, err := s.command("cp", "-R", template, s.dir+"/data").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return
	}
	s.run(t, "initdb", "-D", s.dir+"/data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if template == "" {
		return
	}
	if err := s.command("cp", "-R", s.dir+"/data", s.dir+"/copy").Run(); err == nil {
		_ = os.Rename(s.dir+"/copy", template) // another process may have written it first
	}
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = s.attr
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	return cmd
}

// run runs a PostgreSQL program with its output in a file. The server inherits the output, so a pipe would stay
// open.
func (s *Server) run(t testing.TB, program string, args ...string) {
	t.Helper()
	if err := s.try(program, args...); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) try(program string, args ...string) error {
	said, err := os.CreateTemp("", "said-")
	if err != nil {
		return err
	}
	defer os.Remove(said.Name())
	defer said.Close()
	cmd := s.command(filepath.Join(s.bin, program), args...)
	cmd.Stdout = said
	cmd.Stderr = said
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(said.Name())
		log, _ := os.ReadFile(s.dir + "/log")
		return fmt.Errorf("%s: %w\n%s%s", program, err, text, log)
	}
	return nil
}

// Restart starts a stopped server. It retries, because processes of a killed server may take a moment to end.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	var err error
	for range 50 {
		err = s.try("pg_ctl", "-D", s.dir+"/data", "-l", s.dir+"/log", "-w", "-o",
			"-k "+s.dir+" -c listen_addresses= -c fsync=off -c autovacuum=off -c wal_level=minimal "+
				"-c max_wal_senders=0 -c shared_buffers=16MB -c max_connections=60"+s.options, "start")
		if err == nil {
			return
		}
	}
	t.Fatal(err)
}

// Stop stops the server. mode is fast, immediate or kill (SIGKILL).
func (s *Server) Stop(t testing.TB, mode string) {
	t.Helper()
	if mode == "kill" {
		text, err := os.ReadFile(s.dir + "/data/postmaster.pid")
		first, _, _ := strings.Cut(string(text), "\n")
		pid, wrong := strconv.Atoi(first)
		err = errors.Join(err, wrong)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	s.run(t, "pg_ctl", "-D", s.dir+"/data", "-m", mode, "-w", "stop")
}

// URL returns the URL of a new, empty database.
func (s *Server) URL(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	s.SQL(t, s.url("postgres"), "CREATE DATABASE "+name)
	return s.url(name)
}

func (s *Server) url(database string) string {
	return (&url.URL{Scheme: "postgres", User: url.User("tester"), Path: "/" + database,
		RawQuery: url.Values{"host": {s.dir}}.Encode()}).String()
}

// SQL runs a statement in the database of a URL.
func (s *Server) SQL(t testing.TB, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// end stops the server and waits until all its processes are gone.
func (s *Server) end() {
	s.life.Close()
	s.keeper.Wait()
}
