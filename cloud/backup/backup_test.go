package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/object/objecttest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// rig is a cloud's database and files, and a target for backups.
type rig struct {
	t      *testing.T
	db     *store.DB
	empty  func() store.Config // another place of the same kind
	files  *object.Files
	target object.Store
	s      *Service
	n      int64 // of businesses
}

var keysFile = []byte(`{"signing":"hunter2"}`)

func newRig(t *testing.T, postgres, bucket bool) *rig {
	r := &rig{t: t}
	if postgres {
		r.db = storetest.OpenPostgres(t)
		r.empty = func() store.Config { return store.Config{URL: storetest.PostgresURL(t), Box: storetest.Box(t)} }
	} else {
		r.db = storetest.OpenSQLite(t)
		r.empty = func() store.Config { return store.Config{Dir: t.TempDir(), Box: storetest.Box(t)} }
	}
	var err error
	r.files, err = object.Open(t.TempDir(), make([]byte, 32))
	require.NoError(t, err)
	t.Cleanup(func() { r.files.Close() })
	if bucket {
		s := objecttest.Start(t)
		r.target, err = object.OpenBucket(t.Context(), object.BucketConfig{URL: s.URL, Name: objecttest.Bucket, KeyID: objecttest.KeyID, Secret: objecttest.Secret, Prefix: "copies", Spool: t.TempDir()})
		require.NoError(t, err)
	} else {
		r.target = folder(t, t.TempDir())
	}
	r.s = New(Config{Database: r.db, Files: r.files.Store(), Target: r.target, Spool: filepath.Join(t.TempDir(), "spool"), Keys: keysFile, Release: "v1", Keep: 3, Every: time.Hour})
	return r
}

func folder(t *testing.T, dir string) *object.Folder {
	f, err := object.OpenFolder(dir)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// onEach runs a test on both databases, with backups in a folder and in a bucket.
func onEach(t *testing.T, test func(*rig)) {
	t.Parallel()
	for _, c := range []struct{ postgres, bucket bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		t.Run(fmt.Sprintf("PostgreSQL %t bucket %t", c.postgres, c.bucket), func(t *testing.T) {
			t.Parallel()
			test(newRig(t, c.postgres, c.bucket))
		})
	}
}

// add adds a business with an uploaded file, and gives the file's stored path.
func (r *rig) add(ctx context.Context) (cloud.BusinessID, string, error) {
	r.n++
	id := cloud.BusinessID(r.n)
	f, err := r.files.Put(ctx, "proof", strings.NewReader(fmt.Sprintf("%%PDF-1.7 of %d", id)), 1000, cloud.PDF)
	if err != nil {
		return id, "", err
	}
	return id, f.Path, r.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: id, Code: fmt.Sprint(id), Name: "line\nfeed, tab\tand back\\slash"}}},
			FileChanges: cloud.FileChanges{Files: []cloud.KeptFile{{Path: f.Path, BusinessID: id, At: time.Now()}}}}, nil
	})
}

func (r *rig) take() Manifest {
	r.t.Helper()
	m, err := r.s.Take(r.t.Context())
	require.NoError(r.t, err)
	return m
}

// restored is a cloud made from a backup.
type restored struct {
	db    *store.DB
	files *object.Files
	dir   string
}

func (r *rig) config(id string) (RestoreConfig, string) {
	dir := r.t.TempDir()
	return RestoreConfig{Source: r.target, ID: id, Keys: keysFile, KeysFile: filepath.Join(dir, "keys.json"), Database: r.empty(), Files: folder(r.t, filepath.Join(dir, "files"))}, dir
}

func (r *rig) restore(id string) restored {
	r.t.Helper()
	cfg, dir := r.config(id)
	_, err := Restore(r.t.Context(), cfg)
	require.NoError(r.t, err)
	f, err := object.New(cfg.Files, make([]byte, 32))
	require.NoError(r.t, err)
	return restored{storetest.Open(r.t, cfg.Database), f, dir}
}

// has reports which businesses are there; the file of each can be read.
func (x restored) has(t *testing.T) (out []cloud.BusinessID) {
	for b := cloud.BusinessID(1); b < 200; b++ {
		err := x.db.Look(t.Context(), func(v cloud.View) error {
			got, err := v.Business(b)
			if err == nil {
				require.Equal(t, "line\nfeed, tab\tand back\\slash", got.Name)
			}
			return err
		})
		if err == nil {
			out = append(out, b)
		} else {
			require.ErrorIs(t, err, cloud.ErrNotFound)
		}
	}
	files := 0
	for shard := range 256 {
		paths, err := x.db.ListKeptFiles(t.Context(), fmt.Sprintf("proof/%02x", shard))
		require.NoError(t, err)
		for _, p := range paths {
			f, err := x.files.Get(t.Context(), p)
			require.NoError(t, err, "a file that a row names")
			raw, err := io.ReadAll(f)
			require.NoError(t, errors.Join(err, f.Close()))
			require.Contains(t, string(raw), "%PDF-1.7 of ")
			files++
		}
	}
	require.Len(t, out, files)
	return out
}

// A backup that is taken while the cloud works holds all that was stored before it, each
// row with its file, and a cloud that is made from it works on.
func TestBackupIsWholeWhileTheCloudWorks(t *testing.T) {
	onEach(t, func(r *rig) {
		t, ctx := r.t, r.t.Context()
		for range 20 {
			_, _, err := r.add(ctx)
			require.NoError(t, err)
		}
		working, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() {
			for working.Err() == nil && r.n < 150 {
				_, _, err := r.add(ctx)
				require.NoError(t, err)
			}
		})
		m := r.take()
		stop()
		wg.Wait()
		require.Equal(t, Format, m.Format)
		require.GreaterOrEqual(t, m.Uploads, 20)
		require.Nil(t, m.Keys)
		x := r.restore("")
		has := x.has(t)
		require.GreaterOrEqual(t, len(has), 20)
		for i, b := range has {
			require.EqualValues(t, i+1, b, "none between is missing")
		}
		id, err := x.db.NewID(ctx, store.Devices)
		require.NoError(t, err)
		first, err := r.db.NewID(ctx, store.Devices)
		require.NoError(t, err)
		require.Greater(t, id, first+900_000, "ids that were given since the backup are not given again")
		id, err = x.db.NewID(ctx, "never used before")
		require.NoError(t, err)
		require.Greater(t, id, int64(900_000), "of every kind")
		require.NoError(t, x.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{At: time.Now(), Actor: "a", Action: "b"}}}}, nil
		}), "numbers that the database gives go on")

		// The next backup copies what is new alone.
		have, err := sizes(ctx, r.target)
		require.NoError(t, err)
		_, path, err := r.add(ctx)
		require.NoError(t, err)
		counted := &counting{Store: r.target}
		r.s.cfg.Target = counted
		m = r.take()
		require.Len(t, slices.DeleteFunc(counted.published, func(name string) bool { return !strings.HasPrefix(name, contents) }), m.Uploads-len(have))
		require.Contains(t, strings.Join(counted.published, "\n"), filepath.Base(path)[2:])
		require.Len(t, r.restore(m.ID).has(t), int(r.n))

		cfg, _ := r.config("")
		cfg.Database = store.Config{URL: cfg.Database.URL, Dir: cfg.Database.Dir, Box: storetest.Box(t)}
		other, err := store.Open(ctx, cfg.Database)
		require.NoError(t, err)
		require.NoError(t, other.Close())
		_, err = Restore(ctx, cfg)
		require.ErrorIs(t, err, store.ErrNotEmpty)
	})
}

// counting notes what gets a name.
type counting struct {
	object.Store
	published []string
}

func (c *counting) Draft() (object.Draft, error) {
	d, err := c.Store.Draft()
	return countingDraft{d, c}, err
}

type countingDraft struct {
	object.Draft
	c *counting
}

func (d countingDraft) Publish(ctx context.Context, name string) error {
	d.c.published = append(d.c.published, name)
	return d.Draft.Publish(ctx, name)
}

// breaking fails for good after some steps, as a process that ends does.
type breaking struct {
	object.Store
	left atomic.Int64
}

func breakingAfter(s object.Store, steps int64) *breaking {
	b := &breaking{Store: s}
	b.left.Store(steps)
	return b
}

var errBroken = errors.New("broken")

func (b *breaking) step() error {
	if b.left.Add(-1) < 0 {
		return errBroken
	}
	return nil
}

func (b *breaking) Draft() (object.Draft, error) {
	if err := b.step(); err != nil {
		return nil, err
	}
	d, err := b.Store.Draft()
	return breakingDraft{d, b}, err
}

func (b *breaking) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	if err := b.step(); err != nil {
		return nil, 0, err
	}
	return b.Store.Open(ctx, name)
}

func (b *breaking) List(ctx context.Context, prefix string) iter.Seq2[object.Object, error] {
	return func(yield func(object.Object, error) bool) {
		if err := b.step(); err != nil {
			yield(object.Object{}, err)
			return
		}
		b.Store.List(ctx, prefix)(yield)
	}
}

type breakingDraft struct {
	object.Draft
	b *breaking
}

func (d breakingDraft) Publish(ctx context.Context, name string) error {
	if err := d.b.step(); err != nil {
		return err
	}
	return d.Draft.Publish(ctx, name)
}

// Cut off at any step, a backup is none, and the one before it is still the newest; a
// restore that is cut off is made again.
func TestInterruptedBackupIsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, false, false)
	for range 3 {
		_, _, err := r.add(t.Context())
		require.NoError(t, err)
	}
	good := r.take()
	_, _, err := r.add(t.Context())
	require.NoError(t, err)
	steps := 0
	for ; ; steps++ {
		r.s.cfg.Target = breakingAfter(r.target, int64(steps))
		m, err := r.s.Take(t.Context())
		if err == nil {
			require.NotEqual(t, good.ID, m.ID)
			break
		}
		require.ErrorIs(t, err, errBroken)
		last, err := newest(t, r.target)
		require.NoError(t, err)
		require.Equal(t, good.ID, last.ID)
	}
	require.Greater(t, steps, 10)
	list, err := List(t.Context(), r.target)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Len(t, r.restore("").has(t), 4)

	cfg, dir := r.config("")
	for steps = 0; ; steps++ {
		cfg.Source = breakingAfter(r.target, int64(steps))
		_, err := Restore(t.Context(), cfg)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errBroken)
		require.NoFileExists(t, filepath.Join(cfg.Database.Dir, "postern.db"))
	}
	require.Greater(t, steps, 5)
	names, err := os.ReadDir(cfg.Database.Dir)
	require.NoError(t, err)
	require.Len(t, names, 1, "drafts leave nothing")
	raw, err := os.ReadFile(filepath.Join(dir, "keys.json"))
	require.NoError(t, err)
	require.Equal(t, keysFile, raw)
}

// One bit that changed anywhere in a backup is found, by the check and by a restore, which
// then makes no database.
func TestDamagedBackupIsFound(t *testing.T) {
	t.Parallel()
	for _, postgres := range []bool{false, true} {
		r := newRig(t, postgres, false)
		identity, err := age.GenerateX25519Identity()
		require.NoError(t, err)
		r.s.cfg.Recipients = []age.Recipient{identity.Recipient()}
		_, _, err = r.add(t.Context())
		require.NoError(t, err)
		m := r.take()
		require.NoError(t, Verify(t.Context(), r.target, m, t.TempDir()))
		var names []string
		for o, err := range r.target.List(t.Context(), "") {
			require.NoError(t, err)
			names = append(names, o.Name)
		}
		require.Len(t, names, 5)
		for _, name := range names {
			for _, kind := range []string{"changed", "cut", "gone"} {
				f, _, err := r.target.Open(t.Context(), name)
				require.NoError(t, err)
				good, err := io.ReadAll(f)
				require.NoError(t, errors.Join(err, f.Close()))
				put := func(body []byte) {
					_, err := object.Write(t.Context(), r.target, name, func(w io.Writer) error { _, err := w.Write(body); return err })
					require.NoError(t, err)
				}
				switch bad := bytes.Clone(good); kind {
				case "changed":
					bad[len(bad)/2] ^= 4
					put(bad)
				case "cut":
					put(bad[:len(bad)-2])
				case "gone":
					require.NoError(t, r.target.Delete(t.Context(), name))
				}
				cfg, _ := r.config("")
				cfg.Keys, cfg.Identities = nil, []age.Identity{identity}
				_, err = Restore(t.Context(), cfg)
				if name == root+m.ID+"/"+manifestName {
					require.Error(t, err, kind)
				} else {
					require.ErrorIs(t, err, ErrDamaged, "%s %s", name, kind)
				}
				empty, err := store.IsEmpty(t.Context(), cfg.Database)
				require.NoError(t, err)
				require.True(t, empty, "%s %s", name, kind)
				if !strings.HasPrefix(name, contents) || kind != "changed" { // the check looks at the sizes of files alone
					if m2, err := newest(t, r.target); err == nil {
						require.Error(t, Verify(t.Context(), r.target, m2, t.TempDir()), "%s %s", name, kind)
					}
				}
				put(good)
			}
		}
		require.NoError(t, Verify(t.Context(), r.target, m, t.TempDir()))
	}
}

// Keys are in a backup for the recipient alone; a restore asks for them.
func TestKeysAreEncryptedOrLeftOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, false, false)
	plain := r.take()
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	r.s.cfg.Recipients = []age.Recipient{identity.Recipient()}
	r.s.now = func() time.Time { return time.Now().Add(time.Minute) }
	sealed := r.take()
	for o, err := range r.target.List(t.Context(), "") {
		require.NoError(t, err)
		f, _, err := r.target.Open(t.Context(), o.Name)
		require.NoError(t, err)
		raw, err := io.ReadAll(f)
		require.NoError(t, errors.Join(err, f.Close()))
		require.NotContains(t, string(raw), "hunter2", o.Name)
	}
	stranger, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	for _, c := range []struct {
		id   string
		with func(*RestoreConfig)
		want error
	}{
		{plain.ID, func(c *RestoreConfig) { c.Keys = nil }, ErrKeys},
		{plain.ID, func(c *RestoreConfig) { c.Keys, c.Identities = nil, []age.Identity{identity} }, ErrKeys},
		{sealed.ID, func(c *RestoreConfig) { c.Keys = nil }, ErrKeys},
		{sealed.ID, func(c *RestoreConfig) { c.Keys, c.Identities = nil, []age.Identity{stranger} }, nil},
		{sealed.ID, func(c *RestoreConfig) { require.NoError(t, os.WriteFile(c.KeysFile, []byte("another"), 0o600)) }, nil},
	} {
		cfg, _ := r.config(c.id)
		c.with(&cfg)
		_, err := Restore(t.Context(), cfg)
		require.Error(t, err)
		if c.want != nil {
			require.ErrorIs(t, err, c.want)
		}
		require.NotContains(t, err.Error(), "hunter2")
		require.NoFileExists(t, filepath.Join(cfg.Database.Dir, "postern.db"))
	}
	cfg, _ := r.config("")
	cfg.Keys, cfg.Identities = nil, []age.Identity{stranger, identity}
	_, err = Restore(t.Context(), cfg)
	require.NoError(t, err)
	raw, err := os.ReadFile(cfg.KeysFile)
	require.NoError(t, err)
	require.Equal(t, keysFile, raw)
	info, err := os.Stat(cfg.KeysFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	cfg, _ = r.config("")
	cfg.Identities, cfg.Keys = []age.Identity{identity}, nil
	require.NoError(t, os.WriteFile(cfg.KeysFile, []byte("{\n  \"signing\": \"hunter2\"\n}\n"), 0o600))
	_, err = Restore(t.Context(), cfg)
	require.NoError(t, err, "the same keys, written otherwise")
	newer := sealed
	newer.Dump.Version = 1 << 40
	require.ErrorIs(t, store.LoadDump(t.Context(), r.empty(), newer.Dump, time.Now(), nil), store.ErrNewerDump)
}

// The newest backups are kept, whole ones alone count, and files go when no backup and no
// cloud has them.
func TestOldBackupsGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, false, false)
	now := time.Now()
	r.s.now = func() time.Time { return now }
	_, first, err := r.add(t.Context())
	require.NoError(t, err)
	_, err = object.Write(t.Context(), r.target, root+"20200101T000000Z-00000000/"+databaseName, func(io.Writer) error { return nil })
	require.NoError(t, err)
	var ids []string
	for i := range 6 {
		ids = append(ids, r.take().ID)
		if i == 0 {
			require.NoError(t, r.files.Delete(t.Context(), first))
			_, _, err := r.add(t.Context())
			require.NoError(t, err)
		}
		now = now.Add(20 * time.Hour)
		require.NoError(t, r.s.Prune(t.Context()))
		list, err := List(t.Context(), r.target)
		require.NoError(t, err)
		require.Len(t, list, min(i+1, 3))
		require.Equal(t, ids[i], list[0].ID)
		found, err := listIDs(t.Context(), r.target)
		require.NoError(t, err)
		require.Equal(t, i == 0, found.parts["20200101T000000Z-00000000"] != nil, "an unfinished one, a day later")
	}
	have, err := sizes(t.Context(), r.target)
	require.NoError(t, err)
	require.Len(t, have, 1)
}

// blank is a database without tables.
type blank struct{ taken atomic.Int64 }

func (b *blank) Dump(_ context.Context, _ string, w io.Writer) (store.Dump, error) {
	b.taken.Add(1)
	_, err := w.Write(make([]byte, 1024)) // the end of a tar file
	return store.Dump{Engine: store.EnginePostgres, Rows: map[string]int64{}}, err
}

// Two nodes take one backup each quarter of an hour; a target that is away is tried again
// every minute.
func TestBackupsAreTakenOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		open := func(dir string) *object.Folder {
			f, err := object.OpenFolder(dir)
			require.NoError(t, err)
			return f
		}
		target, files := open(dir), open(t.TempDir())
		defer target.Close()
		defer files.Close()
		away := breakingAfter(target, 1<<30)
		db := &blank{}
		s := New(Config{Database: db, Files: files, Target: away, Spool: dir, Every: 15 * time.Minute, Keep: 2})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = s.Run(ctx) })
		time.Sleep(time.Second)
		other := New(s.cfg)
		wg.Go(func() { _ = other.Run(ctx) })
		time.Sleep(time.Hour)
		require.GreaterOrEqual(t, db.taken.Load(), int64(4))
		require.LessOrEqual(t, db.taken.Load(), int64(9), "not each one twice")
		list, err := List(ctx, target)
		require.NoError(t, err)
		require.Len(t, list, 2)
		n := db.taken.Load()
		away.left.Store(0)
		time.Sleep(20 * time.Minute)
		require.Equal(t, n, db.taken.Load())
		require.Greater(t, s.Metrics.Failed.Load(), int64(3))
		away.left.Store(1 << 30)
		time.Sleep(2 * time.Minute)
		require.Greater(t, db.taken.Load(), n)
		require.NotZero(t, other.Metrics.Newest.Load())
		stop()
		wg.Wait()
	})
}

// takeAhead takes a backup by a clock that is off by some time, and gives its id.
func (r *rig) takeAhead(off time.Duration) string {
	r.t.Helper()
	former := r.s.now
	defer func() { r.s.now = former }()
	r.s.now = func() time.Time { return former().Add(off) }
	return r.take().ID
}

// Backups of a clock that was a year ahead are neither the newest nor counted: the schedule
// takes its own, keeps the newest of them, and names the others in the log.
func TestBackupsOfAClockThatWasAheadAreLeftOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, false, false)
	var log bytes.Buffer
	r.s.cfg.Log, r.s.cfg.Keep = slog.New(slog.NewTextHandler(&log, nil)), 2
	const year = 365 * 24 * time.Hour
	ahead := []string{r.takeAhead(year), r.takeAhead(year + time.Minute)}
	slices.Sort(ahead)

	_, _, err := FindNewest(t.Context(), r.target, time.Now())
	require.ErrorIs(t, err, ErrNone)
	require.ErrorContains(t, err, ahead[1])
	_, err = Restore(t.Context(), RestoreConfig{Source: r.target})
	require.ErrorIs(t, err, ErrNone)
	wait, err := r.s.due(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, wait, time.Duration(0), "none was taken lately")
	require.Zero(t, r.s.Metrics.Newest.Load())
	require.Contains(t, log.String(), ahead[0])
	require.Contains(t, log.String(), ahead[1])
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"))

	_, _, err = r.add(t.Context())
	require.NoError(t, err)
	now := time.Now()
	r.s.now = func() time.Time { return now }
	var own []string
	for range 3 {
		now = now.Add(20 * time.Hour)
		own = append(own, r.take().ID)
		require.NoError(t, r.s.Prune(t.Context()))
	}
	newest, left, err := FindNewest(t.Context(), r.target, now)
	require.NoError(t, err)
	require.Equal(t, own[2], newest.ID)
	require.Equal(t, ahead, left)
	wait, err = r.s.due(t.Context())
	require.NoError(t, err)
	require.Greater(t, wait, r.s.cfg.Every-time.Minute)
	require.Equal(t, newest.TakenAt.Unix(), r.s.Metrics.Newest.Load())
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), "once")
	list, err := List(t.Context(), r.target)
	require.NoError(t, err)
	var ids []string
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	require.Equal(t, append(own[1:], ahead...), ids)
	for _, id := range ids {
		m, err := Find(t.Context(), r.target, id)
		require.NoError(t, err)
		require.NoError(t, Verify(t.Context(), r.target, m, t.TempDir()), "its files are there")
	}

	soon := r.takeAhead(GraceAhead - time.Minute)
	newest, _, err = FindNewest(t.Context(), r.target, now)
	require.NoError(t, err)
	require.Equal(t, soon, newest.ID, "clocks of nodes differ a little")
	require.NoError(t, r.s.Prune(t.Context()))
	_, err = Find(t.Context(), r.target, own[2])
	require.NoError(t, err)
}

// An id that no backup has is answered with those that there are.
func TestAnUnknownBackupIsNamedWithThoseThatThereAre(t *testing.T) {
	t.Parallel()
	r := newRig(t, false, false)
	_, err := Find(t.Context(), r.target, "nope")
	require.ErrorIs(t, err, ErrNone)
	var ids []string
	for i := range 7 {
		ids = append(ids, r.takeAhead(-time.Duration(i)*time.Hour))
	}
	_, err = Find(t.Context(), r.target, "nope")
	require.ErrorIs(t, err, ErrUnknown)
	require.ErrorContains(t, err, `"nope"`)
	for i, id := range ids {
		require.Equal(t, i < 5, strings.Contains(err.Error(), id), "the five newest")
	}
	require.ErrorContains(t, err, "2 more")
}

// Keys that do not fit are refused before anything is written.
func TestKeysThatDoNotFitAreRefusedFirst(t *testing.T) {
	t.Parallel()
	for _, postgres := range []bool{false, true} {
		r := newRig(t, postgres, false)
		digest := func(raw []byte) ([]byte, error) { return raw, nil }
		r.s.cfg.KeysDigest = keysFile
		m := r.take()
		cfg, _ := r.config(m.ID)
		cfg.Keys, cfg.KeysDigest = []byte(`{"signing":"another"}`), digest
		_, err := Restore(t.Context(), cfg)
		require.ErrorIs(t, err, ErrOtherKeys)
		require.NoFileExists(t, cfg.KeysFile)
		require.NoError(t, os.WriteFile(cfg.KeysFile, cfg.Keys, 0o600))
		cfg.Keys = nil
		_, err = Restore(t.Context(), cfg)
		require.ErrorIs(t, err, ErrOtherKeys)
		require.ErrorContains(t, err, cfg.KeysFile)
		empty, err := store.IsEmpty(t.Context(), cfg.Database)
		require.NoError(t, err)
		require.True(t, empty)
		require.NoError(t, os.Remove(cfg.KeysFile))
		cfg.Keys = keysFile
		_, err = Restore(t.Context(), cfg)
		require.NoError(t, err)
	}
}

func newest(t *testing.T, target object.Store) (Manifest, error) {
	m, _, err := FindNewest(t.Context(), target, time.Now())
	return m, err
}
