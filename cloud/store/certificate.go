package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlSaveCertificate = `INSERT INTO certificate (key, value, size, modified_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, size = excluded.size, modified_at = excluded.modified_at`
	sqlCertificate     = `SELECT key, value, size, modified_at FROM certificate WHERE key = $1`
	sqlCertificateKeys = `SELECT key FROM certificate WHERE key >= $1 AND key < $2 ORDER BY key`
	sqlDropCertificate = `DELETE FROM certificate WHERE key = $1 OR key >= $2 AND key < $3`

	sqlLockCertificate = `INSERT INTO certificate_lock (name, owner, expires_at) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at WHERE certificate_lock.expires_at < $4`
	sqlKeepCertificateLock   = `UPDATE certificate_lock SET expires_at = $3 WHERE name = $1 AND owner = $2`
	sqlUnlockCertificateLock = `DELETE FROM certificate_lock WHERE name = $1 AND owner = $2`
)

// CertificateFile is one thing that the client of certificate authorities keeps:
// a certificate, a key, an account. Keys are paths joined by slashes.
type CertificateFile struct {
	Key        string
	Value      []byte
	Size       int64 // bytes
	ModifiedAt time.Time
}

func certificatePurpose(key string) string { return "certificate/" + key }

// below is the range of keys under a path.
func below(path string) (from, to string) {
	if path = strings.Trim(path, "/"); path == "" {
		return "", "\U0010ffff"
	}
	return path + "/", path + "0" // the sign after the slash
}

// SaveCertificateFile keeps a file; it replaces one with the same key.
func (db calls) SaveCertificateFile(ctx context.Context, key string, value []byte, now time.Time) error {
	return db.applyOne(ctx, op{sql: sqlSaveCertificate, args: []any{key, db.box.Seal(certificatePurpose(key), value), int64(len(value)), ms(now)}})
}

// FindCertificateFile finds a file; cloud.ErrNotFound when there is none.
func (db calls) FindCertificateFile(ctx context.Context, key string) (CertificateFile, error) {
	f, err := readOne(ctx, db.database, sqlCertificate, func(r rows, f *CertificateFile) error {
		return r.Scan(&f.Key, &f.Value, &f.Size, when(&f.ModifiedAt))
	}, key)
	if err == nil {
		f.Value, err = db.box.Open(certificatePurpose(key), f.Value)
	}
	return f, err
}

// ListCertificateFiles lists the keys under a path, sorted.
func (db calls) ListCertificateFiles(ctx context.Context, path string) ([]string, error) {
	from, to := below(path)
	return readList(ctx, db.database, sqlCertificateKeys, func(r rows, s *string) error { return r.Scan(s) }, from, to)
}

// DropCertificateFiles removes a file, or everything under a path.
func (db calls) DropCertificateFiles(ctx context.Context, path string) error {
	from, to := below(path)
	return db.applyOne(ctx, op{sql: sqlDropCertificate, args: []any{path, from, to}})
}

// LockCertificate takes a lock that is free, or whose owner did not renew it in
// time, until a moment; ok is false when another holds it.
func (db calls) LockCertificate(ctx context.Context, name, owner string, now, until time.Time) (ok bool, err error) {
	err = db.applyOne(ctx, op{sql: sqlLockCertificate, args: []any{name, owner, ms(until), ms(now)}, need: notStale})
	if errors.Is(err, cloud.ErrStale) {
		return false, nil
	}
	return err == nil, err
}

// KeepCertificateLock holds a lock for longer. cloud.ErrStale: it was lost.
func (db calls) KeepCertificateLock(ctx context.Context, name, owner string, until time.Time) error {
	return db.applyOne(ctx, op{sql: sqlKeepCertificateLock, args: []any{name, owner, ms(until)}, need: notStale})
}

// UnlockCertificate gives a lock back. One that was lost stays as it is.
func (db calls) UnlockCertificate(ctx context.Context, name, owner string) error {
	return db.applyOne(ctx, op{sql: sqlUnlockCertificateLock, args: []any{name, owner}})
}

// applyOne runs one statement that writes, as a transaction of its own.
func (db calls) applyOne(ctx context.Context, o op) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, []op{o})
	})
}
