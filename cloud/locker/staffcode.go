package locker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

const (
	// staffDays is how many days staff codes are drawn for: today and the seven that follow,
	// so that a cabinet that is cut off knows them for a week.
	staffDays = 8
	// maxStaffHolders bounds the staff members of a business with codes: a cabinet tries a
	// code against those of today, and holds those of all days.
	maxStaffHolders = 50
	// staffRecord is how long a staff code stays on record after its day: openings that a
	// cabinet reports later name no member.
	staffRecord = 30 * 24 * time.Hour
	// staffChunk is how many codes a cabinet's list gets in one transaction, those of the
	// nearest days first.
	staffChunk = 64

	sealStaff = "staff-code"
)

// StaffCodeBody is a staff code and its day.
type StaffCodeBody struct {
	Date     string  `json:"date" doc:"YYYY-MM-DD, where the business is"`
	StartsAt *string `json:"starts_at"`
	EndsAt   *string `json:"ends_at"`
	Code     string  `json:"code" doc:"8 digits, for the screen of any cabinet of the business"`
}

// StaffCodesInput asks for the caller's codes.
type StaffCodesInput struct{}

// StaffCodesOutput has the caller's codes of today and the seven days that follow; none
// when none are drawn for the caller. Waiting counts the cabinets that have not confirmed
// them yet.
type StaffCodesOutput struct {
	Result   bool            `json:"result"`
	Codes    []StaffCodeBody `json:"codes" doc:"The first is today's. Empty: none are drawn for you."`
	Cabinets int             `json:"cabinets" doc:"That take staff codes"`
	Waiting  int             `json:"waiting_cabinets" doc:"That have not confirmed all staff codes of the business yet"`
}

// StaffHolderBody is a staff member for whom codes are drawn.
type StaffHolderBody struct {
	AccountID cloud.AccountID `json:"account_id"`
	Name      string          `json:"name"`
	Since     *string         `json:"since"`
}

// StaffHoldersOutput lists staff members for whom codes are drawn.
type StaffHoldersOutput struct {
	Result  bool              `json:"result"`
	Holders []StaffHolderBody `json:"staff_codes"`
}

// StaffCodesEndInput names whose codes end.
type StaffCodesEndInput struct {
	Account cloud.AccountID `path:"account_id" json:"-"`
}

// StaffCodesEndOutput is the answer to the end of a member's codes.
type StaffCodesEndOutput struct {
	Result bool `json:"result"`
}

// rota is a decision about the staff codes of a business.
type rota struct {
	s       *core
	v       cloud.View
	ch      *cloud.Changes
	biz     cloud.Business
	now     time.Time
	holders []cloud.StaffCodeHolder
	codes   []cloud.StaffCode
	changed bool
}

// rotaOf reads the staff codes of a business. Members with codes are read one by one: on
// PostgreSQL others that decide about them wait.
func (s *core) rotaOf(v cloud.View, id cloud.BusinessID, now time.Time) (*rota, error) {
	r := &rota{s: s, v: v, ch: &cloud.Changes{}, now: now}
	var err error
	if r.biz, err = v.Business(id); err != nil {
		return nil, err
	}
	if r.holders, err = cloud.All(v, cloud.StaffCodeHolder{Kept: cloud.Kept[cloud.StaffCodeHolderID]{BusinessID: id}}); err != nil {
		return nil, err
	}
	for i := range r.holders {
		if _, err := cloud.Find(v, r.holders[i]); err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return nil, err
		}
	}
	r.codes, err = cloud.All(v, cloud.StaffCode{Kept: cloud.Kept[cloud.StaffCodeID]{BusinessID: id}})
	return r, err
}

// live reports whether a code opens, today or on a day to come.
func (r *rota) live(c cloud.StaffCode) bool { return c.DroppedAt.IsZero() && c.EndsAt.After(r.now) }

// holder is a member's place among those with codes; nil when there is none.
func (r *rota) holder(id cloud.AccountID) *cloud.StaffCodeHolder {
	i := slices.IndexFunc(r.holders, func(h cloud.StaffCodeHolder) bool { return h.AccountID == id })
	if i < 0 {
		return nil
	}
	return &r.holders[i]
}

// drop ends the codes of a member.
func (r *rota) drop(id cloud.AccountID) {
	for i := range r.codes {
		if c := &r.codes[i]; c.AccountID == id && r.live(*c) {
			r.dropOne(c)
		}
	}
}

func (r *rota) dropOne(c *cloud.StaffCode) {
	c.DroppedAt = r.now
	c.Touch(r.now)
	r.ch.Rows, r.changed = append(r.ch.Rows, *c), true
}

// end takes a member off those for whom codes are drawn.
func (r *rota) end(h cloud.StaffCodeHolder) {
	r.drop(h.AccountID)
	r.ch.DroppedRows = append(r.ch.DroppedRows, h)
	r.holders = slices.DeleteFunc(r.holders, func(x cloud.StaffCodeHolder) bool { return x.ID == h.ID })
	r.changed = true
}

// days are the starts of today and of the days that follow, and of the one behind them.
func (r *rota) days() []time.Time {
	y, m, d := r.now.In(r.biz.Location()).Date()
	out := make([]time.Time, staffDays+1)
	for i := range out {
		out[i] = time.Date(y, m, d+i, 0, 0, 0, 0, r.biz.Location()).UTC()
	}
	return out
}

// fill draws the codes that members lack. A code is drawn again that any member had within
// the time that codes are on record. Codes of other days than those of the business's present
// time zone end.
func (r *rota) fill() error {
	used, has := map[string]bool{}, map[cloud.AccountID]map[string]bool{}
	days := r.days()
	for i := range r.codes {
		c := &r.codes[i]
		if r.live(*c) && !slices.ContainsFunc(days[:staffDays], c.StartsAt.Equal) {
			r.dropOne(c)
		}
	}
	for _, c := range r.codes {
		code, err := r.s.openStaffCode(c)
		if err != nil {
			return err
		}
		used[code] = true
		if r.live(c) {
			if has[c.AccountID] == nil {
				has[c.AccountID] = map[string]bool{}
			}
			has[c.AccountID][c.Day] = true
		}
	}
	for _, h := range r.holders {
		for i := range staffDays {
			c := cloud.StaffCode{AccountID: h.AccountID, Day: days[i].In(r.biz.Location()).Format(time.DateOnly), StartsAt: days[i], EndsAt: days[i+1]}
			if has[h.AccountID][c.Day] {
				continue
			}
			id, err := r.v.NewID(cloud.StaffCodeIDs)
			if err != nil {
				return err
			}
			c.Begin(id, r.biz.ID, r.now)
			code := passcode.Draw(passcode.StaffDigits)
			for used[code] {
				code = passcode.Draw(passcode.StaffDigits)
			}
			used[code] = true
			c.Sealed = r.s.cfg.Sealer.Seal(sealStaff, []byte(code))
			r.codes, r.ch.Rows, r.changed = append(r.codes, c), append(r.ch.Rows, c), true
		}
	}
	return nil
}

// finish gives the changes; the rota's next look is at the next midnight of the business.
func (r *rota) finish() *cloud.Changes {
	r.ch.StaffRotas = []cloud.StaffRota{{BusinessID: r.biz.ID, NextAt: r.days()[1]}}
	return r.ch
}

func (s *core) openStaffCode(c cloud.StaffCode) (string, error) {
	b, err := s.cfg.Sealer.Open(sealStaff, c.Sealed)
	if err != nil {
		return "", fmt.Errorf("open staff code %d: %w", c.ID, err)
	}
	return string(b), nil
}

// mayHoldCodes reports whether staff codes are drawn for an account: it may open doors.
func mayHoldCodes(a cloud.Account, b cloud.BusinessID) bool {
	return a.Enabled && a.BusinessID == b && (a.Type == cloud.ClientAdmin || a.Type == cloud.ClientEmployee && cloud.HasScope(a.Permissions, "lockers:write"))
}

// FindStaffCodes shows the codes of the caller.
func (s staff) FindStaffCodes(ctx context.Context, c cloud.Caller, _ StaffCodesInput) (out StaffCodesOutput, err error) {
	now := time.Now().UTC()
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		r, err := s.rotaOf(v, c.Account.BusinessID, now)
		if err != nil {
			return err
		}
		out, err = r.show(c.Account.ID)
		return err
	})
	return out, err
}

// show are the codes of a member, by day.
func (r *rota) show(id cloud.AccountID) (StaffCodesOutput, error) {
	out, l := StaffCodesOutput{Codes: []StaffCodeBody{}}, r.biz.Location()
	for _, c := range r.codes {
		if c.AccountID != id || !r.live(c) {
			continue
		}
		code, err := r.s.openStaffCode(c)
		if err != nil {
			return out, err
		}
		out.Codes = append(out.Codes, StaffCodeBody{c.Day, cloud.Stamp(c.StartsAt, l), cloud.Stamp(c.EndsAt, l), code})
	}
	slices.SortFunc(out.Codes, func(a, b StaffCodeBody) int { return bytes.Compare([]byte(a.Date), []byte(b.Date)) })
	var err error
	out.Cabinets, out.Waiting, err = r.v.StaffReach(r.biz.ID)
	if r.changed {
		out.Waiting = out.Cabinets
	}
	out.Result = err == nil
	return out, err
}

// DrawStaffCodes draws codes for the caller, who is a member of the staff that may open
// doors: one for today and each of the seven days that follow, and then one for each day
// that comes. Former codes of the caller end: in the cloud at once, at a cabinet as soon as
// its list says so. Errors: FORBIDDEN (the account is none of the business's), STAFF_CODE_LIMIT_REACHED.
func (s staff) DrawStaffCodes(ctx context.Context, c cloud.Caller, _ StaffCodesInput) (out StaffCodesOutput, err error) {
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		r, err := s.rotaOf(v, c.Account.BusinessID, now)
		if err != nil {
			return nil, err
		}
		a, err := v.Account(c.Account.ID)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return nil, err
		}
		if !mayHoldCodes(a, r.biz.ID) { // an operator of the platform who looks in
			return nil, cloud.E(cloud.Forbidden, "FORBIDDEN")
		}
		if r.holder(c.Account.ID) == nil {
			if len(r.holders) >= maxStaffHolders {
				return nil, cloud.E(cloud.Conflict, "STAFF_CODE_LIMIT_REACHED")
			}
			id, err := v.NewID(cloud.StaffCodeHolderIDs)
			if err != nil {
				return nil, err
			}
			h := cloud.StaffCodeHolder{AccountID: c.Account.ID}
			h.Begin(id, r.biz.ID, now)
			r.holders, r.ch.Rows = append(r.holders, h), append(r.ch.Rows, h)
		}
		r.drop(c.Account.ID)
		if err := r.fill(); err != nil {
			return nil, err
		}
		r.audit(actor(c), "staff_codes_drawn", c.Account.ID)
		out, err = r.show(c.Account.ID)
		r.ch.Answer = out
		return r.finish(), err
	})
	return out, err
}

func (r *rota) audit(by, action string, of cloud.AccountID) {
	r.ch.Audits = append(r.ch.Audits, cloud.Audit{BusinessID: r.biz.ID, At: r.now, Actor: by, Action: action, Target: strconv.FormatInt(int64(of), 10), Detail: "{}"})
}

// EndStaffCodes ends the codes of a member: the caller's own, or for an administrator those
// of anyone of the business. Error: STAFF_CODES_NOT_FOUND.
func (s staff) EndStaffCodes(ctx context.Context, c cloud.Caller, in StaffCodesEndInput) (StaffCodesEndOutput, error) {
	now := time.Now().UTC()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		r, err := s.rotaOf(v, c.Account.BusinessID, now)
		if err != nil {
			return nil, err
		}
		h := r.holder(in.Account)
		if h == nil || c.Account.Type != cloud.ClientAdmin && in.Account != c.Account.ID {
			return nil, cloud.E(cloud.NotFound, "STAFF_CODES_NOT_FOUND")
		}
		r.end(*h)
		r.audit(actor(c), "staff_codes_ended", in.Account)
		return r.finish(), nil
	})
	return StaffCodesEndOutput{Result: err == nil}, err
}

// ListStaffCodes lists the members of the caller's business for whom codes are drawn, in
// the order in which they began. It shows no codes.
func (s staff) ListStaffCodes(ctx context.Context, c cloud.Caller, _ StaffCodesInput) (out StaffHoldersOutput, err error) {
	out.Holders = []StaffHolderBody{}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		r, err := s.rotaOf(v, c.Account.BusinessID, time.Now().UTC())
		if err != nil {
			return err
		}
		for _, h := range r.holders {
			a, err := v.Account(h.AccountID)
			if err != nil && !errors.Is(err, cloud.ErrNotFound) {
				return err
			}
			out.Holders = append(out.Holders, StaffHolderBody{h.AccountID, a.Name, cloud.Stamp(h.CreatedAt, r.biz.Location())})
		}
		return nil
	})
	out.Result = err == nil
	return out, err
}

// lookAtRota draws the codes of the day that has come into reach, ends those of members who
// may not have any, and forgets old ones. A suspended business has none.
func (s *core) lookAtRota(ctx context.Context, id cloud.BusinessID, now time.Time) error {
	return s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		r, err := s.rotaOf(v, id, now)
		if err != nil {
			return nil, err
		}
		state, err := v.BusinessState(id)
		if err != nil {
			return nil, err
		}
		for _, h := range slices.Clone(r.holders) {
			if state.Suspended() {
				r.drop(h.AccountID) // drawn again once it goes on
				continue
			}
			a, err := v.Account(h.AccountID)
			if err != nil && !errors.Is(err, cloud.ErrNotFound) {
				return nil, err
			}
			if !mayHoldCodes(a, id) {
				r.end(h)
				r.audit("system", "staff_codes_ended", h.AccountID)
			}
		}
		r.codes = slices.DeleteFunc(r.codes, func(c cloud.StaffCode) bool {
			old := now.Sub(c.EndsAt) > staffRecord
			if old {
				r.ch.DroppedRows = append(r.ch.DroppedRows, c)
			}
			return old
		})
		if !state.Suspended() {
			err = r.fill()
		}
		return r.finish(), err
	})
}

// renewStaffCodes ends every staff code of the business: others are drawn within seconds.
// A cabinet that is out of hand has what is needed to guess them.
func (w *Work) renewStaffCodes() error {
	r, err := w.s.rotaOf(w.v, w.device.BusinessID, w.received)
	if err != nil {
		return err
	}
	for _, h := range r.holders {
		r.drop(h.AccountID)
	}
	if err := r.fill(); err != nil {
		return err
	}
	if r.changed {
		ch := r.finish()
		w.ch.Rows, w.ch.StaffRotas = append(w.ch.Rows, ch.Rows...), append(w.ch.StaffRotas, ch.StaffRotas...)
	}
	return nil
}

// StaffDue lists what is to be done for staff codes, of every business.
type StaffDue interface {
	// HasStaffRotas reports whether any business ever had a staff code.
	HasStaffRotas(ctx context.Context) (bool, error)
	// ListDueStaffRotas lists businesses whose next day is to be drawn, or of which a member
	// may have no codes any more.
	ListDueStaffRotas(ctx context.Context, now time.Time, limit int) ([]cloud.BusinessID, error)
	// ListDueStaffLists lists cabinets whose lists lack changes, by id, behind after.
	ListDueStaffLists(ctx context.Context, after cloud.DeviceID, limit int) ([]cloud.DeviceID, error)
}

// RunStaffCodes draws staff codes day by day and brings them to the lists of cabinets, until
// ctx ends. The rows are the truth: a second run finds nothing to do.
func (s deadlines) RunStaffCodes(ctx context.Context, rows StaffDue) error {
	t := time.NewTicker(staffEvery)
	defer t.Stop()
	for {
		if err := s.lookAtStaffCodes(ctx, rows, time.Now().UTC()); err != nil && ctx.Err() == nil {
			s.log.Error("look at staff codes", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

const (
	staffEvery   = 10 * time.Second
	staffPage    = 100
	staffHashing = 20 * time.Second // of one look
)

// lookAtStaffCodes does what is due at now. What fails does not hold up the rest, and comes
// again with the next look.
func (s deadlines) lookAtStaffCodes(ctx context.Context, rows StaffDue, now time.Time) error {
	if any, err := rows.HasStaffRotas(ctx); err != nil || !any {
		return err
	}
	due, err := rows.ListDueStaffRotas(ctx, now, staffPage)
	if err != nil {
		return err
	}
	for _, id := range due {
		if err := s.lookAtRota(ctx, id, now); err != nil && ctx.Err() == nil {
			s.log.Error("draw staff codes", "business_id", id, "err", err)
		}
	}
	// What ends costs no hash and goes first, everywhere; then the codes of today, then the
	// rest. Both are cut off after a while: what has ended since goes before what is left.
	lacking, err := s.listStaffUntil(ctx, rows, now, time.Time{}, time.Time{})
	if err != nil || lacking == 0 {
		return err
	}
	stop := time.Now().Add(staffHashing)
	for _, until := range []time.Time{now, now.AddDate(0, 0, 2*staffDays)} {
		if _, err := s.listStaffUntil(ctx, rows, now, until, stop); err != nil {
			return err
		}
	}
	return nil
}

// listStaffUntil brings the codes that begin until a time to all cabinets whose lists lack
// changes, and counts these cabinets. It takes no further one once stop has come, where there
// is one.
func (s deadlines) listStaffUntil(ctx context.Context, rows StaffDue, now, until, stop time.Time) (lacking int, err error) {
	for after := cloud.DeviceID(0); ; {
		devices, err := rows.ListDueStaffLists(ctx, after, staffPage)
		if err != nil {
			return lacking, err
		}
		for _, id := range devices {
			if !stop.IsZero() && time.Now().After(stop) {
				return lacking, nil
			}
			after = id
			lacking++
			if err := s.listStaffCodes(ctx, id, now, until); err != nil && ctx.Err() == nil {
				s.log.Error("list staff codes", "device_id", id, "err", err)
			}
			if ctx.Err() != nil {
				return lacking, ctx.Err()
			}
		}
		if len(devices) < staffPage {
			return lacking, nil
		}
	}
}

// listStaffCodes brings the code list of a cabinet in line with the staff codes of its
// business that begin until a time, some codes in a transaction. Verifiers, which cost time,
// are made before.
func (s *core) listStaffCodes(ctx context.Context, id cloud.DeviceID, now, until time.Time) error {
	made := map[cloud.StaffCodeID][]byte{}
	var madeWith []byte // sealed secrets
	for range rekeyTries * staffDays {
		var missing []cloud.StaffCode
		err := s.cfg.Store.Look(ctx, func(v cloud.View) error {
			device, err := v.Device(id)
			if err != nil {
				return err
			}
			_, missing, _, err = s.staffEntries(v, device, now)
			return err
		})
		if err != nil {
			return err
		}
		missing = slices.DeleteFunc(missing, func(c cloud.StaffCode) bool { return c.StartsAt.After(until) || made[c.ID] != nil })
		missing = missing[:min(len(missing), staffChunk)]
		secrets, sealed, err := s.secrets(ctx, id)
		if err != nil {
			return err
		}
		if !bytes.Equal(sealed, madeWith) {
			made, madeWith = map[cloud.StaffCodeID][]byte{}, sealed
		}
		for _, c := range missing {
			if made[c.ID] != nil {
				continue
			}
			code, err := s.openStaffCode(c)
			if err != nil {
				return err
			}
			if made[c.ID], err = s.verifier(ctx, code, secrets); err != nil {
				return err
			}
		}
		whole := false
		err = s.cfg.Store.Decide(ctx, id, func(v cloud.View) (ch *cloud.Changes, err error) {
			device, err := v.Device(id)
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(device.SealedCode, madeWith) {
				return nil, errSecretsChanged
			}
			w := s.Begin(v, device, now)
			if whole, err = w.listStaff(made); err != nil {
				return nil, err
			}
			ch = &cloud.Changes{}
			return ch, w.Finish(ch)
		})
		if err == nil && (whole || len(missing) == 0) || err != nil && !errors.Is(err, errSecretsChanged) {
			return err
		}
	}
	return errMoreCodes
}

// staffEntries compares the list of a cabinet with the staff codes of its business: entries
// that are to go, and codes that it lacks, those of the nearest days first.
func (s *core) staffEntries(v cloud.View, d cloud.Device, now time.Time) (gone []cloud.CodeRow, missing []cloud.StaffCode, version int64, err error) {
	r, err := v.StaffRota(d.BusinessID) // first: what changes meanwhile comes with a later version
	if err != nil {
		return nil, nil, 0, err
	}
	codes, err := cloud.All(v, cloud.StaffCode{Kept: cloud.Kept[cloud.StaffCodeID]{BusinessID: d.BusinessID}})
	if err != nil {
		return nil, nil, 0, err
	}
	wanted := map[cloud.StaffCodeID]cloud.StaffCode{}
	for _, c := range codes {
		if c.DroppedAt.IsZero() && c.EndsAt.After(now) {
			wanted[c.ID] = c
		}
	}
	rows, err := v.StaffEntries(d.ID)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, row := range rows {
		if _, ok := wanted[row.StaffCodeID]; !ok {
			gone = append(gone, row)
		}
		delete(wanted, row.StaffCodeID)
	}
	missing = slices.SortedFunc(maps.Values(wanted), func(a, b cloud.StaffCode) int {
		if n := a.StartsAt.Compare(b.StartsAt); n != 0 {
			return n
		}
		return int(a.ID - b.ID)
	})
	return gone, missing, r.Version, nil
}

// listStaff writes what staffEntries finds, as far as verifiers are made; whole says that
// nothing was left. An entry whose day is over is forgotten without a word: the cabinet
// takes it no more.
func (w *Work) listStaff(made map[cloud.StaffCodeID][]byte) (whole bool, err error) {
	gone, missing, version, err := w.s.staffEntries(w.v, w.device, w.received)
	if err != nil {
		return false, err
	}
	put := func(row cloud.CodeRow) {
		w.device.CodeList++
		w.listed = true
		row.DeviceID, row.CreatedAt, row.Entry.Number = w.device.ID, w.received, w.device.CodeList
		w.ch.Codes = append(w.ch.Codes, row)
	}
	for _, row := range gone {
		row.DroppedAt = w.received
		w.ch.Codes = append(w.ch.Codes, row)
		if time.Unix(0, row.Entry.NotAfter).After(w.received) {
			put(cloud.CodeRow{StaffCodeID: row.StaffCodeID, DroppedAt: w.received, Entry: wire.CodeEntry{Op: wire.CodeRevoke, Kind: wire.CodeStaff, Verifier: row.Entry.Verifier}})
		}
	}
	whole = true
	for _, c := range missing {
		if made[c.ID] == nil {
			whole = false
			break
		}
		put(cloud.CodeRow{StaffCodeID: c.ID, Entry: wire.CodeEntry{Op: wire.CodeSet, Kind: wire.CodeStaff, Verifier: made[c.ID], Active: wire.ActiveNow, NotBefore: c.StartsAt.UnixNano(), NotAfter: c.EndsAt.UnixNano()}})
	}
	if whole {
		w.ch.StaffLists = append(w.ch.StaffLists, cloud.StaffList{DeviceID: w.device.ID, Version: version, Number: w.device.CodeList})
	}
	return whole, nil
}

// staffOf is the staff member whose code an entry of the cabinet's list was, for an opening
// that the cabinet authorised by it; the zero account for an entry of none that is known.
func (w *rows) staffOf(number uint64) (a cloud.Account, err error) {
	if number == 0 {
		return a, nil
	}
	rows, err := w.v.CodeRows(w.device.ID, number-1, 1)
	if err != nil || len(rows) == 0 || rows[0].Entry.Number != number || rows[0].StaffCodeID == 0 {
		return a, err
	}
	code, err := cloud.Find(w.v, cloud.StaffCode{Kept: cloud.Kept[cloud.StaffCodeID]{ID: rows[0].StaffCodeID, BusinessID: w.device.BusinessID}})
	if err == nil {
		a, err = w.v.Account(code.AccountID)
	}
	if errors.Is(err, cloud.ErrNotFound) {
		return cloud.Account{}, nil
	}
	return a, err
}
