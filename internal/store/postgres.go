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
)

const (
	// schema is where the tables are, unless the URL names another by search_path.
	schema = "fullpipe"
	// connectWithin is how long a server may take to answer, unless the URL says connect_timeout.
	connectWithin = 5 * time.Second
	// migrating and trimming are advisory locks: "fullpi" and a number.
	migrating, trimming int64 = 0x66756c6c70690001, 0x66756c6c70690002
)

// postgresTypes turns the types of the migrations, which are SQLite's, into PostgreSQL's.
var postgresTypes = strings.NewReplacer(" INTEGER", " BIGINT", " REAL", " DOUBLE PRECISION", " BLOB", " BYTEA",
	" WITHOUT ROWID", "")

// Unavailable says that the history's server did not let itself be asked.
type Unavailable struct {
	Where string // the URL without user, password and options
	Err   error
}

func (e *Unavailable) Error() string { return fmt.Sprintf("the history at %s: %v", e.Where, e.Err) }
func (e *Unavailable) Unwrap() error { return e.Err }

// Lost says whether an error is that of a connection to the history's server which ended while it
// was used: the next one is another. SQLSTATE classes 08 (connection) and 57 (the server ends).
func Lost(err error) bool {
	var said *pgconn.PgError
	var broken *net.OpError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &broken) ||
		errors.As(err, &said) && (strings.HasPrefix(said.Code, "08") || strings.HasPrefix(said.Code, "57"))
}

// openPostgres connects when it is first used, and again after the server was away.
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
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectWithin && !strings.Contains(text, "connect_timeout") {
		config.ConnectTimeout = connectWithin // pgx waits two minutes
	}
	config.BuildFrontend = newFrontend
	db := sql.OpenDB(&connector{stdlib.GetConnector(*config,
		stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			return migratePostgres(ctx, conn, ownSchema)
		})), where(config), config.Password})
	db.SetMaxOpenConns(4)
	return &Store{db: db, dir: dir, outbox: newOutbox(dir), dialect: dialect{
		untilCommit: " FOR SHARE",
		toChange:    " FOR UPDATE",
		oneState:    &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		mayTrim:     fmt.Sprintf("SELECT pg_try_advisory_xact_lock(%d)", trimming),
	}}, nil
}

// CheckURL says what is wrong with a URL of a history, and nothing of what stands in it.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

// parseURL reads a URL of a history. No error of it shows any of the text, since where that
// is wrong, nobody knows which part of it is the password.
func parseURL(text string) (*pgx.ConnConfig, error) {
	bad := errors.New("the URL of the history cannot be read; it goes " +
		"postgres://USER@HOST:5432/DATABASE?sslmode=verify-full, with %XX for what is special in a name or password")
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
	return nil, fmt.Errorf("the URL of the history: %w", reason)
}

// where is a server and database as errors may show them.
func where(config *pgx.ConnConfig) string {
	if strings.HasPrefix(config.Host, "/") {
		return fmt.Sprintf("postgres:///%s?host=%s", config.Database, config.Host)
	}
	return fmt.Sprintf("postgres://%s/%s", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), config.Database)
}

// connector makes connections whose errors name no password.
type connector struct {
	driver.Connector
	where, password string
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err == nil {
		return conn, nil
	}
	return nil, &Unavailable{c.where, reasonOf(err, c.password)}
}

// reasonOf is why a connection failed, in one line.
func reasonOf(err error, password string) error {
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

// migratePostgres brings the tables up to date, all or nothing; who comes first does it for
// all.
func migratePostgres(ctx context.Context, conn *pgx.Conn, ownSchema bool) error {
	const ask = "SELECT version FROM fullpipe_version"
	version := 0
	err := conn.QueryRow(ctx, ask, pgx.QueryExecModeSimpleProtocol).Scan(&version)
	var no *pgconn.PgError
	if errors.As(err, &no) && (no.Code == "42P01" || no.Code == "3F000") { // no such table, no such schema
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
