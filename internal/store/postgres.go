package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fullpipe-net/fullpipe/internal/outbox"
)

const (
	// schema contains the tables, unless search_path in the URL names another.
	schema = "fullpipe"
	// connectTimeout applies unless the URL has connect_timeout.
	connectTimeout = 5 * time.Second
	// migrating and trimming are advisory locks: "fullpi" and a number.
	migrating, trimming int64 = 0x66756c6c70690001, 0x66756c6c70690002
)

// postgresTypes replaces SQLite's types, which the migrations use, by PostgreSQL's.
var postgresTypes = strings.NewReplacer(" INTEGER", " BIGINT", " REAL", " DOUBLE PRECISION", " BLOB", " BYTEA",
	" WITHOUT ROWID", "")

// Unavailable reports that the history's server could not be reached or failed.
type Unavailable struct {
	Where string // URL without user, password and options
	Err   error
}

func (e *Unavailable) Error() string { return fmt.Sprintf("the history at %s: %v", e.Where, e.Err) }
func (e *Unavailable) Unwrap() error { return e.Err }

// Lost reports whether the connection to the server broke while in use; the next call opens a new one. SQLSTATE
// classes 08 (connection) and 57 (operator intervention).
func Lost(err error) bool {
	var said *pgconn.PgError
	var broken *net.OpError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &broken) ||
		errors.As(err, &said) && (strings.HasPrefix(said.Code, "08") || strings.HasPrefix(said.Code, "57"))
}

// openPostgres connects at first use, and reconnects after an outage.
func openPostgres(dir, text string) (*Store, error) {
	config, err := parseURL(text)
	if err != nil {
		return nil, err
	}
	ownSchema := config.RuntimeParams["search_path"] == ""
	if ownSchema {
		config.RuntimeParams["search_path"] = schema
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "fullpipe"
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout && !strings.Contains(text, "connect_timeout") {
		config.ConnectTimeout = connectTimeout // pgx's default is 2 minutes
	}
	config.BuildFrontend = newFrontend
	db := sql.OpenDB(&connector{stdlib.GetConnector(*config,
		stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			return migratePostgres(ctx, conn, ownSchema)
		})), where(config), config.Password})
	db.SetMaxOpenConns(4)
	return &Store{db: db, dir: dir, outbox: outbox.In(dir), dialect: dialect{
		untilCommit: " FOR SHARE",
		toChange:    " FOR UPDATE",
		now: func() string {
			return "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) * 1000000"
		},
		fleetLock: fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", migrating+1),
		types:     postgresTypes,
		oneState:  &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		mayTrim:   fmt.Sprintf("SELECT pg_try_advisory_xact_lock(%d)", trimming),
	}}, nil
}

// CheckURL returns an error that says what is wrong with a history URL, without quoting it.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

// parseURL parses a history URL. Its errors quote no part of the text, because any part of a malformed URL may be
// the password.
func parseURL(text string) (*pgx.ConnConfig, error) {
	bad := errors.New("invalid history URL; want " +
		"postgres://USER@HOST:5432/DATABASE?sslmode=verify-full, with special characters of a name or password as %XX")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Fragment != "" || u.Opaque != "" ||
		u.User == nil && strings.Contains(text, "@") {
		return nil, bad
	}
	config, err := pgx.ParseConfig(text)
	if err == nil {
		return config, nil
	}
	password, _ := u.User.Password()
	reason := errors.Unwrap(err)
	if reason == nil || password != "" && strings.Contains(reason.Error(), password) {
		return nil, bad
	}
	return nil, fmt.Errorf("history URL: %w", reason)
}

// where returns the server and database for error messages.
func where(config *pgx.ConnConfig) string {
	if strings.HasPrefix(config.Host, "/") {
		return fmt.Sprintf("postgres:///%s?host=%s", config.Database, config.Host)
	}
	return fmt.Sprintf("postgres://%s/%s", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), config.Database)
}

// connector opens connections whose errors contain no password.
type connector struct {
	driver.Connector
	where, password string
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err == nil {
		return conn, nil
	}
	return nil, &Unavailable{c.where, connectError(err, c.password)}
}

// connectError returns the reason of a failed connection in one line, without the password.
func connectError(err error, password string) error {
	var said *pgconn.PgError
	var dial *net.OpError
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.As(err, &said):
		err = errors.New(said.Message)
	case errors.As(err, &name):
		err = fmt.Errorf("no address of %s: %s", name.Name, name.Err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("no answer in time")
	case errors.As(err, &dial):
		err = dial.Err
	default:
		if connect := (*pgconn.ConnectError)(nil); errors.As(err, &connect) {
			err = errors.Unwrap(connect)
		}
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if password != "" {
		text = strings.ReplaceAll(text, password, "xxxxx")
	}
	return errors.New(text)
}

// migratePostgres brings the tables up to date, all or nothing. An advisory lock lets one process at a time do it.
func migratePostgres(ctx context.Context, conn *pgx.Conn, ownSchema bool) error {
	const ask = "SELECT version FROM fullpipe_version"
	version := 0
	err := conn.QueryRow(ctx, ask, pgx.QueryExecModeSimpleProtocol).Scan(&version)
	var no *pgconn.PgError
	if errors.As(err, &no) && (no.Code == "42P01" || no.Code == "3F000") { // undefined table, undefined schema
		err = nil
	}
	if err != nil {
		return err
	}
	if texts, _, err := pending(version); err != nil || len(texts) == 0 {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	begin := fmt.Sprintf("SELECT pg_advisory_xact_lock(%d);", migrating)
	if ownSchema {
		begin += fmt.Sprintf("DO $$ BEGIN IF to_regnamespace('%[1]s') IS NULL THEN CREATE SCHEMA %[1]s; END IF; END $$;",
			schema)
	}
	begin += `CREATE TABLE IF NOT EXISTS fullpipe_version (
		one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL);
		INSERT INTO fullpipe_version VALUES(1, 0) ON CONFLICT DO NOTHING`
	if _, err := tx.Exec(ctx, begin); err != nil {
		return fmt.Errorf("its tables: %w", err)
	}
	if err := tx.QueryRow(ctx, ask, pgx.QueryExecModeSimpleProtocol).Scan(&version); err != nil {
		return err
	}
	texts, latest, err := pending(version)
	if err != nil {
		return err
	}
	for i, text := range texts {
		if _, err := tx.Exec(ctx, postgresTypes.Replace(text)); err != nil {
			return fmt.Errorf("to version %d: %w", version+i+1, err)
		}
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("UPDATE fullpipe_version SET version = %d", latest)); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
