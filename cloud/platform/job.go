package platform

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Jobs is what this package needs of the database for exports and removals.
type Jobs interface {
	OpenBusinessJobs(ctx context.Context) ([]cloud.BusinessJob, error)
	// RemoveStep removes some rows. empty says, before the first of them is gone, that
	// no parcel lies in a cabinet; end makes of a job that is through, or was stopped,
	// its finished form and the last audit lines.
	RemoveStep(ctx context.Context, j cloud.BusinessJob, empty func(cloud.View) (bool, error), end func(cloud.BusinessJob) (cloud.BusinessJob, []cloud.Audit)) (cloud.BusinessJob, error)
	ExportStep(ctx context.Context, j cloud.BusinessJob) (table string, lines [][]byte, out cloud.BusinessJob, err error)
	KeepStep(ctx context.Context, from, to cloud.BusinessJob) error
	CountBusinesses(ctx context.Context, now time.Time) error
}

// Archives are where archives of businesses lie. All nodes see the same ones. Safe for
// concurrent use.
type Archives interface {
	// Write makes one of what fill writes, whole or not at all, in place of one with this
	// name, and gives its size in bytes.
	Write(ctx context.Context, name string, fill func(io.Writer) error) (int64, error)
	// Open opens one. Error: cloud.ErrNotFound.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// Delete removes one. One that is not there is no error.
	Delete(ctx context.Context, name string) error
	// Forget removes those that were written before a time.
	Forget(ctx context.Context, before time.Time) error
}

// Job is an export or a removal as operators see it.
type Job struct {
	JobID      cloud.BusinessJobID `json:"job_id"`
	BusinessID cloud.BusinessID    `json:"business_id"`
	Status     string              `json:"status" doc:"running, finished, or stopped: a removal that found a parcel in a cabinet and removed nothing"`
	Rows       int64               `json:"rows" doc:"That were exported or removed so far"`
	Bytes      int64               `json:"bytes" doc:"Of an export's archive so far"`
	CreatedAt  *string             `json:"created_at"`
	FinishedAt *string             `json:"finished_at"`
}

func showJob(j cloud.BusinessJob) Job {
	out := Job{JobID: j.ID, BusinessID: j.BusinessID, Status: "running", Rows: j.Rows, Bytes: j.Bytes, CreatedAt: cloud.Stamp(j.CreatedAt, time.UTC), FinishedAt: cloud.Stamp(j.FinishedAt, time.UTC)}
	if !j.FinishedAt.IsZero() {
		out.Status = "finished"
	}
	if j.Kind == cloud.RemovalJob {
		if out.Bytes = 0; j.Bytes == cloud.RemovalStopped {
			out.Status = "stopped"
		}
	}
	return out
}

// JobOutput shows a job.
type JobOutput struct {
	Result bool `json:"result"`
	Job    Job  `json:"job"`
}

// ByJob names a job.
type ByJob struct {
	ID cloud.BusinessJobID `path:"job_id"`
}

// FindExport shows an export. Error: JOB_NOT_FOUND.
func (s *Service) FindExport(ctx context.Context, _ cloud.Caller, in ByJob) (JobOutput, error) {
	j, err := s.job(ctx, in.ID, cloud.ExportJob)
	return JobOutput{err == nil, showJob(j)}, err
}

// FindRemoval shows a removal; it is there when the business is not any more. Error:
// JOB_NOT_FOUND.
func (s *Service) FindRemoval(ctx context.Context, _ cloud.Caller, in ByJob) (JobOutput, error) {
	j, err := s.job(ctx, in.ID, cloud.RemovalJob)
	return JobOutput{err == nil, showJob(j)}, err
}

func (s *Service) job(ctx context.Context, id cloud.BusinessJobID, kind string) (j cloud.BusinessJob, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		j, err = v.BusinessJob(id)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && j.Kind != kind {
			return cloud.E(cloud.NotFound, "JOB_NOT_FOUND")
		}
		return err
	})
	return j, err
}

// Export begins an archive of all data of a business and its uploaded files, without
// secrets. While one is
// made, it is that one. Error: BUSINESS_NOT_FOUND.
func (s *Service) Export(ctx context.Context, c cloud.Caller, in ByBusiness) (JobOutput, error) {
	return s.begin(ctx, c, in.ID, cloud.ExportJob, "business_export_begun", "", nil)
}

// RemovalPreview is what a removal would remove, with its digest.
type RemovalPreview struct {
	Result     bool     `json:"result"`
	Business   Business `json:"business"`
	Cabinets   int      `json:"cabinets"`
	People     int      `json:"people" doc:"Accounts of people and partners"`
	Deliveries int      `json:"locker_deliveries" doc:"Of all times, counted up to 10000"`
	Inside     int      `json:"deliveries_inside" doc:"Whose parcel lies in a cabinet, or may still be brought to one: none may be left"`
	Parcels    []Parcel `json:"parcels" doc:"The first 50 of deliveries_inside. A pass collects, cancels or clears them; a cabinet that is retired with its contents does not count"`
	Digest     string   `json:"digest" doc:"Of what is shown here and of every change in the business until now; a removal names it"`
}

// Parcel is a delivery, or a compartment, that keeps a business from being removed.
type Parcel struct {
	Number  *string `json:"delivery_number"`
	Status  *string `json:"status" doc:"Of the delivery. created: it may still be brought; cancelled, failed or expired without a compartment: its cabinet has not confirmed yet that the code ended"`
	Cabinet string  `json:"cabinet_code"`
	Grid    *string `json:"grid_code" doc:"Of the compartment, where one is known"`
}

// shownParcels bounds the list of a preview and of a refusal.
const shownParcels = 50

// inside are the states of deliveries whose parcel lies, or may lie, in a cabinet, or
// may be brought to it: a delivery code works without the cloud.
var inside = []cloud.DeliveryStatus{cloud.DeliveryCreated, cloud.DeliveryDoorsOpened, cloud.DeliveryDelivered, cloud.DeliveryCorrecting}

// PreviewRemoval shows what a removal would remove. Error: BUSINESS_NOT_FOUND.
func (s *Service) PreviewRemoval(ctx context.Context, _ cloud.Caller, in ByBusiness) (out RemovalPreview, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		out, err = s.foresee(v, in.ID)
		return err
	})
	return out, err
}

func (s *Service) foresee(v cloud.View, id cloud.BusinessID) (out RemovalPreview, err error) {
	b, err := found(v, id)
	if err != nil {
		return out, err
	}
	state, err := v.BusinessState(id)
	if err != nil {
		return out, err
	}
	one := cloud.Page{Sort: "id", Limit: 1}
	_, cabinets, err1 := v.Devices(cloud.DeviceFilter{BusinessID: id, Page: one})
	_, people, err2 := v.Accounts(cloud.AccountFilter{BusinessID: id, Page: one})
	_, deliveries, err3 := v.Deliveries(cloud.DeliveryFilter{BusinessID: id, Page: one})
	at, err4 := v.BusinessRevision(id)
	c, err5 := countContents(v, id)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return out, err
	}
	out = RemovalPreview{Result: true, Business: show(b, state), Cabinets: cabinets.Total, People: people.Total, Deliveries: deliveries.Total, Inside: c.total, Parcels: c.list}
	m := hmac.New(sha256.New, s.cfg.DigestKey)
	fmt.Fprintf(m, "%d %q %q %s %d %d %d %d %d %d %d", b.ID, b.Code, b.Name, state.SuspendedAt.Format(time.RFC3339Nano), out.Cabinets, out.People, out.Deliveries, out.Inside, at.Audit, at.Delivery, at.Exception)
	out.Digest = hex.EncodeToString(m.Sum(nil))
	return out, nil
}

// isEmpty reports whether nothing lies in a cabinet of a business, nor may be brought
// to one.
func isEmpty(v cloud.View, id cloud.BusinessID) (bool, error) {
	c, err := countContents(v, id)
	return c.total == 0, err
}

// contents are what keeps a business from being removed.
type contents struct {
	v     cloud.View
	codes map[cloud.DeviceID]string
	grids map[cloud.DeliveryID]*string // where a delivery lies
	ended map[cloud.DeliveryID]bool    // deliveries that were looked at for codes that may live
	now   time.Time
	list  []Parcel
	total int
}

func countContents(v cloud.View, id cloud.BusinessID) (*contents, error) {
	c := &contents{v: v, codes: map[cloud.DeviceID]string{}, grids: map[cloud.DeliveryID]*string{}, ended: map[cloud.DeliveryID]bool{}, now: moment(), list: []Parcel{}}
	if err := c.addCompartments(id); err != nil {
		return c, err
	}
	for _, status := range inside {
		found, listed, err := v.Deliveries(cloud.DeliveryFilter{BusinessID: id, Status: status, Page: cloud.Page{Sort: "id", Limit: cabinetsAtOnce}})
		if err != nil {
			return c, err
		}
		for _, d := range found {
			c.add(Parcel{&d.Number, new(string(d.Status)), c.codes[d.DeviceID], c.grids[d.ID]})
		}
		c.total += max(listed.Total-len(found), 0)
	}
	return c, nil
}

func (c *contents) add(p Parcel) {
	if c.total++; len(c.list) < shownParcels {
		c.list = append(c.list, p)
	}
}

// cabinetsAtOnce are read at a time.
const cabinetsAtOnce = 200

// addCompartments adds compartments in which something lies, each delivery once: one
// that was not collected in time is expired, lies in its compartment, and its code works.
// Cabinets that were retired or reported as stolen do not count: their codes ended.
func (c *contents) addCompartments(id cloud.BusinessID) error {
	for page := (cloud.Page{Sort: "id", Limit: cabinetsAtOnce}); ; {
		devices, listed, err := c.v.Devices(cloud.DeviceFilter{BusinessID: id, Page: page})
		if err != nil {
			return err
		}
		for _, d := range devices {
			c.codes[d.ID] = d.Code
			if !d.RetiredAt.IsZero() || d.Disabled && d.IsCutOff() {
				continue
			}
			cells, err := c.v.Compartments(d.ID)
			if err != nil {
				return err
			}
			for _, cell := range cells {
				if err := c.addCompartment(d, cell); err != nil {
					return err
				}
			}
			if err := c.addCodes(d); err != nil {
				return err
			}
		}
		if listed.Next == nil {
			return nil
		}
		page.After = listed.Next
	}
}

func (c *contents) addCompartment(d cloud.Device, cell cloud.Compartment) error {
	switch {
	case cell.State == cloud.GridReserved, c.grids[cell.DeliveryID] != nil: // what is reserved is empty; its delivery counts by its status
		return nil
	case cell.DeliveryID == 0:
		if cell.State == cloud.GridOccupied || cell.Dispute != nil && cell.Dispute.Cabinet != "" && !cell.Dispute.Accepted {
			c.add(Parcel{nil, nil, d.Code, &cell.GridCode})
		}
		return nil
	}
	found, err := c.v.Delivery(cell.DeliveryID)
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		c.add(Parcel{nil, nil, d.Code, &cell.GridCode})
		return nil
	case err != nil:
		return err
	}
	c.grids[found.ID] = &cell.GridCode
	if !slices.Contains(inside, found.Status) {
		c.add(Parcel{&found.Number, new(string(found.Status)), d.Code, &cell.GridCode})
	}
	return nil
}

// codesAtOnce are read at a time.
const codesAtOnce = 1000

// addCodes adds deliveries that ended while their cabinet was away: until it confirms the
// end of their codes, or their time is over, a courier may still bring them.
func (c *contents) addCodes(d cloud.Device) error {
	for from := max(d.ListHeld(), max(d.ListFrom, 1)-1, 1); from < d.CodeList; { // 0 would list only what is live
		rows, err := c.v.CodeRows(d.ID, from, codesAtOnce)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			from = r.Entry.Number
			if !r.Ends() || c.ended[r.DeliveryID] {
				continue
			}
			found, err := c.v.Delivery(r.DeliveryID)
			if errors.Is(err, cloud.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			c.ended[r.DeliveryID] = true
			mayCome := found.Status == cloud.DeliveryCancelled || found.Status == cloud.DeliveryFailed || found.Status == cloud.DeliveryExpired
			if mayCome && found.DeviceID == d.ID && c.grids[found.ID] == nil && c.now.Before(found.DeliverBefore) {
				c.add(Parcel{&found.Number, new(string(found.Status)), d.Code, nil})
			}
		}
	}
	return nil
}

// RemoveInput removes a business.
type RemoveInput struct {
	ID      cloud.BusinessID `path:"business_id" json:"-"`
	Digest  string           `json:"digest" required:"true" max:"64" doc:"Of the preview"`
	Code    string           `json:"code" required:"true" max:"32" doc:"The business's code, typed once more"`
	Reason  string           `json:"reason" required:"true" max:"255"`
	Confirm *bool            `json:"confirm" required:"true" doc:"true: it cannot be undone"`
}

// Remove begins the removal of a suspended business with all its data. Errors:
// BUSINESS_NOT_FOUND, BUSINESS_NOT_SUSPENDED, PARCELS_INSIDE, APPROVAL_CHANGED,
// VALIDATION_FAILED.
func (s *Service) Remove(ctx context.Context, c cloud.Caller, in RemoveInput) (JobOutput, error) {
	if err := blank(in.Reason); err != nil {
		return JobOutput{}, err
	}
	f := check.Fields{}
	if f.Agreed("confirm", in.Confirm); len(f) > 0 {
		return JobOutput{}, f.Err()
	}
	return s.begin(ctx, c, in.ID, cloud.RemovalJob, "business_removal_begun", in.Reason, func(v cloud.View) error {
		p, err := s.foresee(v, in.ID)
		switch {
		case err != nil:
			return err
		case p.Business.Status != "suspended":
			return cloud.E(cloud.Conflict, "BUSINESS_NOT_SUSPENDED")
		case p.Inside > 0:
			return &cloud.Error{Kind: cloud.Conflict, Code: "PARCELS_INSIDE", Args: []any{p.Inside}, Details: map[string]any{"parcels": p.Parcels}}
		case !hmac.Equal([]byte(p.Digest), []byte(in.Digest)) || in.Code != p.Business.Code:
			return &cloud.Error{Kind: cloud.Conflict, Code: "APPROVAL_CHANGED", Details: map[string]any{"digest": p.Digest}}
		}
		return nil
	})
}

func (s *Service) begin(ctx context.Context, c cloud.Caller, b cloud.BusinessID, kind, action, reason string, may func(cloud.View) error) (out JobOutput, err error) {
	now := moment()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		business, err := found(v, b)
		if err != nil {
			return nil, err
		}
		jobs, err := v.BusinessJobs(b, kind, 1)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{business}}, AuditChanges: cloud.AuditChanges{Audits: lines(c, b, now, action, target("business", int64(b)))}}
		if len(jobs) > 0 && jobs[0].FinishedAt.IsZero() {
			out = JobOutput{true, showJob(jobs[0])}
			return ch, nil
		}
		if may != nil {
			if err := may(v); err != nil {
				return nil, err
			}
			state, err := v.BusinessState(b)
			if err != nil {
				return nil, err
			}
			// Written as it is: a decision of a pass that began before is refused by it.
			ch.BusinessStates = []cloud.BusinessState{state}
		}
		id, err := v.NewID(cloud.BusinessJobIDs)
		if err != nil {
			return nil, err
		}
		j := cloud.BusinessJob{ID: cloud.BusinessJobID(id), BusinessID: b, Kind: kind, RequestedBy: c.Account.ID, Reason: reason, CreatedAt: now}
		ch.BusinessJobs = []cloud.BusinessJob{j}
		out = JobOutput{true, showJob(j)}
		return ch, nil
	})
	if err == nil && cloud.PreviewOf(ctx) == nil {
		s.kick()
	}
	return out, err
}

func (s *Service) kick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

const (
	jobEvery   = 15 * time.Second
	countEvery = time.Minute
	keepFor    = 7 * 24 * time.Hour // of archives
)

// Run does the steps of exports and removals, and counts how businesses are, until ctx
// ends. Any number of nodes may.
func (s *Service) Run(ctx context.Context, log *slog.Logger) error {
	tick, count := time.NewTicker(jobEvery), time.NewTicker(countEvery)
	defer tick.Stop()
	defer count.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.wake:
		case <-count.C:
			if err := s.cfg.Jobs.CountBusinesses(ctx, time.Now()); err != nil && ctx.Err() == nil {
				log.Warn("businesses are not counted", "err", err)
			}
		}
		if err := errors.Join(s.Work(ctx), s.cfg.Archives.Forget(ctx, time.Now().Add(-keepFor))); err != nil && ctx.Err() == nil {
			log.Warn("a job of a business waits", "err", err)
		}
	}
}

// Work does the jobs that are there to their end.
func (s *Service) Work(ctx context.Context) error {
	jobs, err := s.cfg.Jobs.OpenBusinessJobs(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, j := range jobs {
		if j.Kind == cloud.ExportJob {
			if j, err = s.hold(ctx, j); err != nil && !errors.Is(err, cloud.ErrStale) {
				return err
			}
		}
		for j.FinishedAt.IsZero() && ctx.Err() == nil && err == nil {
			j, err = s.Step(ctx, j)
		}
		if errors.Is(err, cloud.ErrStale) { // another node is at it
			s.held.Delete(j.ID)
			err = nil
		}
		if err != nil {
			failed, err = errors.Join(failed, fmt.Errorf("job %d: %w", j.ID, err)), nil
		}
	}
	return failed
}

// holdFor is how long a node that does no step of an export has it: only one writes its
// parts.
const holdFor = time.Minute

// hold takes an export for this node. Error: cloud.ErrStale when another one has it.
func (s *Service) hold(ctx context.Context, j cloud.BusinessJob) (cloud.BusinessJob, error) {
	if _, own := s.held.Load(j.ID); !own && j.Found > time.Now().UnixMilli() {
		return j, cloud.ErrStale
	}
	to := j
	to.Found = time.Now().Add(holdFor).UnixMilli()
	s.held.Store(j.ID, true)
	err := s.cfg.Jobs.KeepStep(ctx, j, to)
	if errors.Is(err, cloud.ErrStale) {
		s.held.Delete(j.ID)
	}
	return to, err
}

// Step does one step of a job and gives it as it stands then. Error: cloud.ErrStale
// when another one did it.
func (s *Service) Step(ctx context.Context, j cloud.BusinessJob) (cloud.BusinessJob, error) {
	if j.Kind == cloud.ExportJob {
		return s.exportStep(ctx, j)
	}
	empty := func(v cloud.View) (bool, error) { return isEmpty(v, j.BusinessID) }
	out, err := s.cfg.Jobs.RemoveStep(ctx, j, empty, func(j cloud.BusinessJob) (cloud.BusinessJob, []cloud.Audit) {
		j.FinishedAt = moment()
		if j.Bytes == cloud.RemovalStopped {
			operator := cloud.Caller{Account: cloud.Account{ID: j.RequestedBy}}
			return j, lines(operator, j.BusinessID, j.FinishedAt, "business_removal_stopped", target("business", int64(j.BusinessID)))
		}
		return j, []cloud.Audit{{At: j.FinishedAt, Actor: j.RequestedBy.Actor(), Action: "business_removed", Target: target("business", int64(j.BusinessID)), Detail: fmt.Sprintf(`{"rows":%d}`, j.Rows)}}
	})
	if err == nil && !out.FinishedAt.IsZero() && out.Bytes != cloud.RemovalStopped {
		err = s.dropArchives(ctx, j.BusinessID)
	}
	return out, err
}

// dropArchives removes the archives of a business that is gone. Archives that a crash
// leaves here go after their week.
func (s *Service) dropArchives(ctx context.Context, b cloud.BusinessID) error {
	var jobs []cloud.BusinessJob
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		jobs, err = v.BusinessJobs(b, cloud.ExportJob, 1000)
		return err
	})
	for _, j := range jobs {
		for n := range j.Part {
			err = errors.Join(err, s.cfg.Archives.Delete(ctx, part(j.ID, n)))
		}
	}
	return err
}

// part is the name of a part of an archive. Parts are members of one gzip file, one
// after another.
func part(id cloud.BusinessJobID, n int) string { return fmt.Sprintf("%d-%06d.gz", id, n) }

// exportStep writes a part before the row that says so: a step that is done again
// writes the same part over.
func (s *Service) exportStep(ctx context.Context, j cloud.BusinessJob) (cloud.BusinessJob, error) {
	table, lines, next, err := s.cfg.Jobs.ExportStep(ctx, j)
	if err != nil {
		return j, err
	}
	over := len(lines) == 0 && next.Step != j.Step && s.cfg.Over(next)
	if len(lines) > 0 || over {
		size, err := s.cfg.Archives.Write(ctx, part(j.ID, j.Part), func(to io.Writer) error { return s.writePart(ctx, to, j, table, lines, over) })
		if err != nil {
			return j, fmt.Errorf("export: %w", err)
		}
		next.Part, next.Bytes = j.Part+1, j.Bytes+size
	}
	if next.Found = time.Now().Add(holdFor).UnixMilli(); over {
		next.FinishedAt = moment()
	}
	if err := s.cfg.Jobs.KeepStep(ctx, j, next); err != nil {
		return j, err // the job is still this node's
	}
	if over {
		s.held.Delete(j.ID)
	}
	return next, nil
}

// keptFiles is the table of uploaded files: their contents go beside its lines.
const keptFiles = "kept_file"

// writePart writes a gzip member with files of a tar archive in it, or with the archive's
// end.
func (s *Service) writePart(ctx context.Context, to io.Writer, j cloud.BusinessJob, table string, lines [][]byte, end bool) error {
	level := gzip.DefaultCompression
	if table == keptFiles { // pictures do not get smaller
		level = gzip.BestSpeed
	}
	z, err := gzip.NewWriterLevel(to, level)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	if end {
		return errors.Join(t.Close(), z.Close())
	}
	body := append(bytes.Join(lines, []byte("\n")), '\n')
	err = addFile(t, fmt.Sprintf("business-%d/%06d-%s.jsonl", j.BusinessID, j.Part, table), j.CreatedAt, bytes.NewReader(body), int64(len(body)))
	if table == keptFiles && s.cfg.Open != nil {
		for _, line := range lines {
			if err == nil {
				err = errors.Join(ctx.Err(), s.addUpload(ctx, t, j, line))
			}
		}
	}
	if err == nil {
		err = t.Flush()
	}
	return errors.Join(err, z.Close())
}

// addUpload adds the content of an uploaded file by its row's line. One that is gone since
// is left out.
func (s *Service) addUpload(ctx context.Context, t *tar.Writer, j cloud.BusinessJob, line []byte) error {
	var row struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return err
	}
	body, size, err := s.cfg.Open(ctx, row.Path)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(addFile(t, fmt.Sprintf("business-%d/files/%s", j.BusinessID, row.Path), j.CreatedAt, body, size), body.Close())
}

func addFile(t *tar.Writer, name string, at time.Time, body io.Reader, size int64) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: at}); err != nil {
		return err
	}
	n, err := io.Copy(t, body)
	if err == nil && n != size {
		err = fmt.Errorf("%s has %d bytes of %d", name, n, size)
	}
	return err
}

// Download is the archive of a finished export, a tar file in gzip. Errors:
// JOB_NOT_FOUND, EXPORT_NOT_READY, EXPORT_EXPIRED.
func (s *Service) Download(ctx context.Context, _ cloud.Caller, in ByJob) (io.ReadCloser, int64, string, error) {
	j, err := s.job(ctx, in.ID, cloud.ExportJob)
	switch {
	case err != nil:
		return nil, 0, "", err
	case j.FinishedAt.IsZero():
		return nil, 0, "", cloud.E(cloud.Conflict, "EXPORT_NOT_READY")
	}
	first, err := s.cfg.Archives.Open(ctx, part(j.ID, 0))
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		return nil, 0, "", cloud.E(cloud.Conflict, "EXPORT_EXPIRED")
	case err != nil:
		return nil, 0, "", err
	}
	read := func(n int) (io.ReadCloser, error) { // also after the call that it was opened in
		return s.cfg.Archives.Open(context.WithoutCancel(ctx), part(j.ID, n))
	}
	return &archive{parts: j.Part, read: read, open: first, next: 1}, j.Bytes, fmt.Sprintf("business-%d.tar.gz", j.BusinessID), nil
}

// archive reads parts one after another.
type archive struct {
	parts int
	read  func(part int) (io.ReadCloser, error)
	next  int
	open  io.ReadCloser
}

func (a *archive) Read(to []byte) (int, error) {
	for {
		if a.open == nil {
			if a.next == a.parts {
				return 0, io.EOF
			}
			f, err := a.read(a.next)
			if err != nil {
				return 0, err
			}
			a.open, a.next = f, a.next+1
		}
		n, err := a.open.Read(to)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := a.Close(); err != nil || n > 0 {
			return n, err
		}
	}
}

func (a *archive) Close() error {
	f := a.open
	a.open = nil
	if f == nil {
		return nil
	}
	return f.Close()
}
