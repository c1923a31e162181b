package store

import (
	"context"
	"errors"
	"os"
)

// Backup copies a history in a file to a new file that only its owner can read, while other
// processes use it. A hub on the copy can lead at once, and its database is another one than this.
func (f *Fleet) Backup(ctx context.Context, name string) error {
	// SQLite fills an empty file
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = f.exec(ctx, "VACUUM INTO $1", name)
	if err == nil {
		err = forgetLead(ctx, name)
	}
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err != nil {
		_ = os.Remove(name) // of no use
	}
	return err
}

// forgetLead takes the lead and the identity out of a copy.
func forgetLead(ctx context.Context, name string) error {
	s, err := openFile("", name, "_pragma=journal_mode(MEMORY)")
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.db.ExecContext(ctx, "UPDATE hub SET until_ns = 0, holder = '', database = ''")
	return err
}
