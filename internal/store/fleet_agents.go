package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Agent is a host of the fleet.
type Agent struct {
	ID, Name string
	NKey     string // public key
	HostID   string
	Labels   map[string]string
	Hello    json.RawMessage // its last report, as the bus carries it
	Seen     time.Time
	ClockOff time.Duration // how far its clock is ahead of the hub's
	Waiting  int           // results in its outbox
	Joined   time.Time
	Removed  time.Time // zero: a member
}

// Enrolment is a token that lets agents join.
type Enrolment struct {
	Hash     string // SHA-256 of the secret, hex
	Uses     int
	Until    time.Time
	Networks []netip.Prefix // allowed addresses; none: all
	Labels   map[string]string
	By       string // the user
}

// ErrEnrolment reports that a token does not admit an agent. It does not say why, because a stranger may ask.
var ErrEnrolment = errors.New("the token is unknown, used up or expired, or not valid from this address")

// ErrNameTaken reports that another agent has the name.
var ErrNameTaken = errors.New("another agent has this name")

// AddEnrolment stores a token.
func (f *Fleet) AddEnrolment(ctx context.Context, e Enrolment, now time.Time) error {
	networks := make([]string, len(e.Networks))
	for i, p := range e.Networks {
		networks[i] = p.String()
	}
	labels, err := json.Marshal(e.Labels)
	if err != nil {
		return err
	}
	return f.exec(ctx, "INSERT INTO enrolment(hash, uses_left, until_ns, networks, labels, made_by, made_ns) "+
		"VALUES($1,$2,$3,$4,$5,$6,$7)", e.Hash, e.Uses, e.Until.UnixNano(), strings.Join(networks, ","), string(labels),
		plain(e.By), now.UnixNano())
}

// Enrol admits an agent by a token and uses it once. An agent whose key is a member already gets its own row and uses
// nothing. A name that is taken gets a number: "web-2".
func (f *Fleet) Enrol(ctx context.Context, hash string, a Agent, from netip.Addr, now time.Time) (admitted Agent,
	err error) {
	if err := f.mayEnrol(ctx, hash, a.NKey); err != nil {
		return a, err
	}
	err = f.change(ctx, func(tx *sql.Tx) error {
		known, err := scanAgent(tx.QueryRowContext(ctx, selectAgent+" WHERE nkey = $1", a.NKey))
		if err == nil && known.Removed.IsZero() {
			admitted = known
			return nil
		}
		if err == nil {
			return ErrEnrolment // removed: its key stays refused
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		labels, err := f.useToken(ctx, tx, hash, from, now)
		if err != nil {
			return err
		}
		if a.Labels == nil {
			a.Labels = map[string]string{}
		}
		for name, value := range labels { // the token's labels cannot be replaced by the agent's
			a.Labels[name] = value
		}
		a.Name, err = f.freeName(ctx, tx, a.Name)
		if err != nil {
			return err
		}
		text, err := json.Marshal(a.Labels)
		if err != nil {
			return err
		}
		a.Joined = now
		a.Hello = json.RawMessage("{}")
		admitted = a
		_, err = tx.ExecContext(ctx, "INSERT INTO agent(id, name, nkey, host_id, labels, joined_ns) "+
			"VALUES($1,$2,$3,$4,$5,$6)", a.ID, plain(a.Name), a.NKey, plain(a.HostID), plain(string(text)), now.UnixNano())
		return err
	})
	return admitted, err
}

// mayEnrol refuses a stranger without a transaction, which would delay others: neither the token nor the key is known.
func (f *Fleet) mayEnrol(ctx context.Context, hash, nkey string) error {
	var known bool
	err := f.s.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM enrolment WHERE hash = $1) OR "+
		"EXISTS (SELECT 1 FROM agent WHERE nkey = $2)", hash, nkey).Scan(&known)
	if err == nil && !known {
		err = ErrEnrolment
	}
	return err
}

// useToken checks a token, takes one use of it and returns its labels.
func (f *Fleet) useToken(ctx context.Context, tx *sql.Tx, hash string, from netip.Addr, now time.Time) (
	labels map[string]string, err error) {
	var uses, until int64
	var networks, text string
	err = tx.QueryRowContext(ctx, "SELECT uses_left, until_ns, networks, labels FROM enrolment WHERE hash = $1"+
		f.s.toChange, hash).Scan(&uses, &until, &networks, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrEnrolment
	}
	if err != nil {
		return nil, err
	}
	if uses < 1 || now.UnixNano() >= until || !inNetworks(networks, from) {
		return nil, ErrEnrolment
	}
	if err := json.Unmarshal([]byte(text), &labels); err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, "UPDATE enrolment SET uses_left = uses_left - 1 WHERE hash = $1", hash)
	return labels, err
}

func inNetworks(networks string, from netip.Addr) bool {
	if networks == "" {
		return true
	}
	for text := range strings.SplitSeq(networks, ",") {
		if p, err := netip.ParsePrefix(text); err == nil && p.Contains(from.Unmap()) {
			return true
		}
	}
	return false
}

// freeName returns a name that no member has.
func (f *Fleet) freeName(ctx context.Context, tx *sql.Tx, name string) (string, error) {
	const maxTries = 10000
	for n := 1; n < maxTries; n++ {
		free := name
		if n > 1 {
			free = fmt.Sprintf("%s-%d", name, n)
		}
		var taken int
		err := tx.QueryRowContext(ctx, "SELECT count(*) FROM agent WHERE name = $1 AND removed_ns = 0", free).Scan(&taken)
		if err != nil || taken == 0 {
			return free, err
		}
	}
	return "", ErrNameTaken
}

const selectAgent = "SELECT id, name, nkey, host_id, labels, hello, seen_ns, clock_off_ns, waiting, joined_ns, " +
	"removed_ns " +
	"FROM agent"

func scanAgent(row interface{ Scan(...any) error }) (a Agent, err error) {
	var labels, hello string
	var seen, off, joined, removed int64
	err = row.Scan(&a.ID, &a.Name, &a.NKey, &a.HostID, &labels, &hello, &seen, &off, &a.Waiting, &joined, &removed)
	if err != nil {
		return a, err
	}
	a.Hello = json.RawMessage(hello)
	a.Seen = moment(seen)
	a.ClockOff = time.Duration(off)
	a.Joined = moment(joined)
	a.Removed = moment(removed)
	return a, json.Unmarshal([]byte(labels), &a.Labels)
}

// Agents returns all members, sorted by name.
func (f *Fleet) Agents(ctx context.Context) (all []Agent, err error) {
	err = f.query(ctx, func(rows *sql.Rows) error {
		a, err := scanAgent(rows)
		all = append(all, a)
		return err
	}, selectAgent+" WHERE removed_ns = 0 ORDER BY name")
	return all, err
}

// AgentByKey returns the member with a public key. The error is ErrNotFound without one.
func (f *Fleet) AgentByKey(ctx context.Context, nkey string) (Agent, error) {
	a, err := scanAgent(f.s.db.QueryRowContext(ctx, selectAgent+" WHERE nkey = $1 AND removed_ns = 0", nkey))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return a, err
}

// Here records that an agent is there, the results in its outbox, and how far its clock is ahead.
func (f *Fleet) Here(ctx context.Context, id string, waiting int, ahead time.Duration, now time.Time) error {
	return f.exec(ctx, "UPDATE agent SET seen_ns = $1, clock_off_ns = $2, waiting = $3 WHERE id = $4", now.UnixNano(),
		ahead.Nanoseconds(), waiting, id)
}

// Saw records an agent's report and how far its clock is ahead.
func (f *Fleet) Saw(ctx context.Context, id string, hello json.RawMessage, ahead time.Duration, now time.Time) error {
	return f.exec(ctx, "UPDATE agent SET seen_ns = $1, clock_off_ns = $2, hello = $3 WHERE id = $4", now.UnixNano(),
		ahead.Nanoseconds(), plain(string(hello)), id)
}

// Rename gives an agent another name.
func (f *Fleet) Rename(ctx context.Context, id, name string) error {
	return f.change(ctx, func(tx *sql.Tx) error {
		free, err := f.freeName(ctx, tx, name)
		if err != nil {
			return err
		}
		if free != name {
			return ErrNameTaken
		}
		_, err = tx.ExecContext(ctx, "UPDATE agent SET name = $1 WHERE id = $2", plain(name), id)
		return err
	})
}

// SetLabels replaces an agent's labels.
func (f *Fleet) SetLabels(ctx context.Context, id string, labels map[string]string) error {
	text, err := json.Marshal(labels)
	if err != nil {
		return err
	}
	return f.exec(ctx, "UPDATE agent SET labels = $1 WHERE id = $2", plain(string(text)), id)
}

// RemoveAgent ends an agent's membership for ever: its key is refused from now on, and its results stay.
func (f *Fleet) RemoveAgent(ctx context.Context, id string, now time.Time) error {
	return f.exec(ctx, "UPDATE agent SET removed_ns = $1 WHERE id = $2 AND removed_ns = 0", now.UnixNano(), id)
}
