package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
)

// ErrNotLeading reports that another hub leads, or that this hub's lead has expired.
var ErrNotLeading = errors.New("another hub leads")

// Lead is the right of one hub process to start runs. Each change of the holder raises the epoch,
// to the time in µs at least, and agents refuse orders of a lower one.
//
// A copy of a database knows nothing of the leads after it was made, and no clock is certain to
// give it later epochs. The agents know: each returns the newest lead that it followed. Above
// raises the epoch of a copy.
type Lead struct {
	Epoch  int64
	Holder string
	// Database is random. A copy that Backup made, and one that Above was called for, has another
	// one.
	Database string
	secret   string // of a database and all its copies
}

// Proof returns a text by which hubs on a database and on its copies recognize an earlier lead: an
// agent cannot invent one.
func (l Lead) Proof(database string, epoch int64) string {
	mac := hmac.New(sha256.New, []byte(l.secret))
	fmt.Fprintf(mac, "%d %s", epoch, database)
	return base64.RawStdEncoding.EncodeToString(mac.Sum(nil))
}

// Proves reports whether a proof is of a lead in this lead's database or a copy of it.
func (l Lead) Proves(database string, epoch int64, proof string) bool {
	return hmac.Equal([]byte(l.Proof(database, epoch)), []byte(proof))
}

// TakeLead takes or renews the lead for a time, by the database's clock. The error is ErrNotLeading
// while another holder has it. All hubs take it for the same time.
func (f *Fleet) TakeLead(ctx context.Context, holder string, lasts time.Duration) (lead Lead, err error) {
	err = f.change(ctx, func(tx *sql.Tx) error {
		var until, now int64
		err := tx.QueryRowContext(ctx, "SELECT epoch, holder, database, secret, until_ns, "+f.s.now()+" FROM hub"+
			f.s.toChange).Scan(&lead.Epoch, &lead.Holder, &lead.Database, &lead.secret, &until, &now)
		if err != nil {
			return err
		}
		switch {
		case lead.Holder == holder: // also after it expired: no other hub has had it since
		// a later end is of a clock that was set back
		case until > now && until <= now+lasts.Nanoseconds():
			return ErrNotLeading
		default:
			lead.Epoch = max(lead.Epoch+1, now/time.Microsecond.Nanoseconds())
			lead.Holder = holder
		}
		if lead.Database == "" {
			lead.Database = rand.Text()
		}
		if lead.secret == "" {
			lead.secret = rand.Text()
		}
		_, err = tx.ExecContext(ctx, "UPDATE hub SET epoch = $1, holder = $2, database = $3, secret = $4, until_ns = $5",
			lead.Epoch, holder, lead.Database, lead.secret, now+lasts.Nanoseconds())
		return err
	})
	return lead, err
}

// Above gives a lead an epoch above one that agents have seen, and the database another identity:
// it is a copy of the one where that epoch was. The error is ErrNotLeading if the lead is another
// hub's by now.
func (f *Fleet) Above(ctx context.Context, lead Lead, seen int64) (Lead, error) {
	now := lead
	now.Epoch = seen + 1
	now.Database = rand.Text()
	err := f.change(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "UPDATE hub SET epoch = $1, database = $2 WHERE epoch = $3 AND holder = $4",
			now.Epoch, now.Database, lead.Epoch, lead.Holder)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, ErrNotLeading)
		}
		return nil
	})
	return now, err
}

// YieldLead ends the lead, so that another hub need not wait for its end.
func (f *Fleet) YieldLead(ctx context.Context, lead Lead) error {
	return f.exec(ctx, "UPDATE hub SET until_ns = 0, holder = '' WHERE epoch = $1 AND holder = $2", lead.Epoch,
		lead.Holder)
}

// leads is a condition on the database's clock for statements whose last two parameters are epoch
// and holder.
func (f *Fleet) leads(epoch, holder int) string {
	return fmt.Sprintf("EXISTS (SELECT 1 FROM hub WHERE epoch = $%d AND holder = $%d AND until_ns > %s)", epoch, holder,
		f.s.now())
}
