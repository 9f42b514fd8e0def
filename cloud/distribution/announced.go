package distribution

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/cloud/locale"
)

// PackageMembers are those of a package that a carrier announces.
type PackageMembers struct {
	CarrierReference string          `json:"carrier_reference" required:"true" max:"64" line:"true" doc:"Your own; the same one with the same package is the package that was announced"`
	MemberNumber     string          `json:"member_number" max:"64" line:"true" doc:"Of the recipient at the carrier"`
	TrackingNumber   string          `json:"tracking_number" max:"64" line:"true"`
	Recipient        cloud.Recipient `json:"recipient" required:"true"`
	LocationID       cloud.SiteID    `json:"destination_location_id" required:"true" min:"1" doc:"location_id of the site that it goes to"`
	Size             string          `json:"size" enum:"S,M,L,XL"`
	Weight           float64         `json:"weight" min:"0" max:"1000" doc:"Kilograms"`
}

// AnnounceInput announces packages.
type AnnounceInput struct {
	Packages []PackageInput `json:"packages" required:"true" min:"1" max:"200" rows:"true" doc:"Each is taken or rejected by itself"`
}

// PackageInput is one package of an announcement.
type PackageInput struct {
	PackageMembers
	unreadable error // VALIDATION_FAILED
}

// UnmarshalJSON reads a package. What cannot be read is an error of the package.
func (r *PackageInput) UnmarshalJSON(raw []byte) (err error) {
	*r = PackageInput{}
	r.unreadable, err = check.ReadRow(raw, &r.PackageMembers)
	return err
}

// MarshalJSON writes the package alone.
func (r PackageInput) MarshalJSON() ([]byte, error) { return json.Marshal(r.PackageMembers) }

// check is what is wrong with a package by itself, and in its announcement, whose references
// before it are given; nil for nothing.
func (r *PackageInput) check(references map[string]bool) error {
	if r.unreadable != nil {
		return r.unreadable
	}
	f := check.Of(&r.PackageMembers)
	if r.CarrierReference != "" && references[r.CarrierReference] {
		f.Say("carrier_reference", check.MessageTwice)
	}
	references[r.CarrierReference] = true
	if r.Recipient.Phone == "" && r.Recipient.Email == "" {
		f.Add("recipient", "A phone number or an email address is required.")
	}
	return f.Err()
}

// Place is a site at an end of a package's way.
type Place struct {
	LocationID cloud.SiteID `json:"location_id"`
	Name       string       `json:"name"`
	Address    string       `json:"address"`
}

// PackageBody is an announced package as it is answered.
type PackageBody struct {
	Number           string           `json:"package_number"`
	ProviderID       cloud.ProviderID `json:"provider_id"`
	CarrierReference string           `json:"carrier_reference"`
	MemberNumber     *string          `json:"member_number"`
	TrackingNumber   *string          `json:"tracking_number"`
	Recipient        cloud.Recipient  `json:"recipient"`
	Destination      Place            `json:"destination"`
	Size             *string          `json:"size"`
	Weight           *float64         `json:"weight" doc:"Kilograms"`
	Status           string           `json:"status" doc:"announced"`
	AnnouncedAt      *string          `json:"announced_at"`
}

// Rejected is a package that was not taken.
type Rejected struct {
	Index   int    `json:"index" doc:"In packages, from 0"`
	Code    string `json:"code"`
	Message string `json:"message"`

	Errors map[string][]string `json:"errors" null:"true" doc:"By member of the package, of VALIDATION_FAILED"`
}

func rejected(c cloud.Caller, index int, e *cloud.Error) Rejected {
	return Rejected{index, e.Code, locale.Error(c.Language, e.Code, e.Args...), locale.Fields(c.Language, e.Fields)}
}

// AnnounceOutput says what became of each package.
type AnnounceOutput struct {
	Result   bool          `json:"result"`
	Accepted int           `json:"accepted"`
	Rejected []Rejected    `json:"rejected"`
	Packages []PackageBody `json:"packages" doc:"Those that were taken, in the order of the call"`
}

// Announce takes packages of the calling provider for sites of its business, at once. One with
// a carrier reference that is known already is answered as it was announced; with other data
// it is rejected with DUPLICATE_REFERENCE, one for a site that there is not with
// SITE_NOT_FOUND, and a malformed one with VALIDATION_FAILED. Error: VALIDATION_FAILED of the
// list itself. Source: lockers-devices 5, operation 27.
func (s *Service) Announce(ctx context.Context, c cloud.Caller, in AnnounceInput) (out AnnounceOutput, err error) {
	references := map[string]bool{}
	malformed := make([]error, len(in.Packages))
	for i := range in.Packages {
		malformed[i] = in.Packages[i].check(references)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	for range 3 {
		if out, err = s.announce(ctx, c, in, malformed, now); !errors.Is(err, cloud.ErrExists) { // another call was first
			break
		}
	}
	return out, err
}

func (s *Service) announce(ctx context.Context, c cloud.Caller, in AnnounceInput, malformed []error, now time.Time) (out AnnounceOutput, err error) {
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(c.Provider.BusinessID)
		if err != nil {
			return nil, err
		}
		out = AnnounceOutput{Result: true, Rejected: []Rejected{}, Packages: []PackageBody{}}
		ch, sites := &cloud.Changes{}, siteBook{v: v, business: b.ID, known: map[cloud.SiteID]*cloud.Site{}}
		for i, x := range in.Packages {
			var p cloud.AnnouncedPackage
			var site *cloud.Site
			isNew, err := false, malformed[i]
			if err == nil {
				p, isNew, err = announced(v, c, b.ID, x.PackageMembers, now)
			}
			if err == nil {
				site, err = sites.find(x.LocationID)
			}
			var refused *cloud.Error
			switch {
			case errors.As(err, &refused):
				out.Rejected = append(out.Rejected, rejected(c, i, refused))
				continue
			case err != nil:
				return nil, err
			case isNew:
				ch.Rows = append(ch.Rows, p)
			}
			out.Packages = append(out.Packages, packageBody(p, *site, b.Location()))
		}
		out.Accepted = len(out.Packages)
		if len(ch.Rows) > 0 {
			detail, err := json.Marshal(map[string]int{"packages": len(ch.Rows)})
			if err != nil {
				return nil, err
			}
			ch.Audits = append(ch.Audits, cloud.Audit{BusinessID: b.ID, At: now, Actor: actor(c), Action: "packages_announced", Target: actor(c), Detail: string(detail)})
		}
		ch.Answer = out
		return ch, nil
	})
	return out, err
}

func actor(c cloud.Caller) string { return fmt.Sprint("provider:", int64(c.Provider.ID)) }

// announced is a package of an announcement: the one that its carrier reference names, or a new
// one. Error: DUPLICATE_REFERENCE.
func announced(v cloud.View, c cloud.Caller, b cloud.BusinessID, in PackageMembers, now time.Time) (p cloud.AnnouncedPackage, isNew bool, err error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return p, false, err
	}
	hash := sha256.Sum256(raw)
	like := cloud.AnnouncedPackage{Kept: cloud.Kept[cloud.AnnouncedPackageID]{BusinessID: b}, ProviderID: c.Provider.ID, CarrierReference: in.CarrierReference}
	known, _, err := cloud.List(v, like, cloud.Page{Sort: "id", Limit: 1})
	switch {
	case err != nil:
		return p, false, err
	case len(known) > 0 && bytes.Equal(known[0].RequestHash, hash[:]):
		return known[0], false, nil
	case len(known) > 0:
		return p, false, cloud.E(cloud.Conflict, "DUPLICATE_REFERENCE")
	}
	id, err := v.NewID(cloud.AnnouncedPackageIDs)
	like.Begin(id, b, now)
	like.MemberNumber, like.TrackingNumber, like.Recipient, like.SiteID = in.MemberNumber, in.TrackingNumber, in.Recipient, in.LocationID
	like.Size, like.Weight, like.Status, like.RequestHash = in.Size, in.Weight, cloud.PackageAnnounced, hash[:]
	return like, true, err
}

// siteBook reads each site of a business once.
type siteBook struct {
	v        cloud.View
	business cloud.BusinessID
	known    map[cloud.SiteID]*cloud.Site
}

// find finds a site. Error: SITE_NOT_FOUND.
func (b siteBook) find(id cloud.SiteID) (*cloud.Site, error) {
	if s, ok := b.known[id]; ok {
		if s == nil {
			return nil, cloud.E(cloud.NotFound, "SITE_NOT_FOUND")
		}
		return s, nil
	}
	list, _, err := cloud.List(b.v, cloud.Site{Kept: cloud.Kept[cloud.SiteID]{ID: id, BusinessID: b.business}}, cloud.Page{Sort: "id", Limit: 1})
	if err != nil {
		return nil, err
	}
	b.known[id] = nil
	if len(list) == 0 || id == 0 {
		return nil, cloud.E(cloud.NotFound, "SITE_NOT_FOUND")
	}
	b.known[id] = &list[0]
	return &list[0], nil
}

func packageBody(p cloud.AnnouncedPackage, s cloud.Site, l *time.Location) PackageBody {
	return PackageBody{Number: p.Number(), ProviderID: p.ProviderID, CarrierReference: p.CarrierReference, MemberNumber: cloud.OrNull(p.MemberNumber), TrackingNumber: cloud.OrNull(p.TrackingNumber),
		Recipient: p.Recipient, Destination: Place{s.ID, s.Name, s.Address}, Size: cloud.OrNull(p.Size), Weight: cloud.OrNull(p.Weight), Status: p.Status, AnnouncedAt: cloud.Stamp(p.CreatedAt, l)}
}

// PackagesInput asks for a part of the caller's announced packages.
type PackagesInput struct {
	Status           string `query:"status" enum:"announced"`
	CarrierReference string `query:"carrier_reference" max:"64"`
	MemberNumber     string `query:"member_number" max:"64"`
	check.Keyset
}

// SitePackagesInput asks for a part of the packages that were announced to a business.
type SitePackagesInput struct {
	Status     string       `query:"status" enum:"announced"`
	LocationID cloud.SiteID `query:"location_id" min:"1" doc:"Of the site that they go to"`
	check.Keyset
}

// PackagesOutput lists announced packages.
type PackagesOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Packages []PackageBody `json:"packages"`
}

// ListOwn lists the announced packages of the calling provider, newest first. Source:
// lockers-devices 5, operation 28.
func (s *Service) ListOwn(ctx context.Context, c cloud.Caller, in PackagesInput) (PackagesOutput, error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return PackagesOutput{}, err
	}
	like := cloud.AnnouncedPackage{Kept: cloud.Kept[cloud.AnnouncedPackageID]{BusinessID: c.Provider.BusinessID}, ProviderID: c.Provider.ID, CarrierReference: in.CarrierReference,
		MemberNumber: in.MemberNumber, Status: in.Status}
	return s.list(ctx, like, page, func(l cloud.Listed) check.PageOutput { return in.Output(in, l) })
}

// List lists the packages that were announced to the caller's business, newest first. Source:
// lockers-devices 6.
func (s *Service) List(ctx context.Context, c cloud.Caller, in SitePackagesInput) (PackagesOutput, error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return PackagesOutput{}, err
	}
	like := cloud.AnnouncedPackage{Kept: cloud.Kept[cloud.AnnouncedPackageID]{BusinessID: c.Account.BusinessID}, SiteID: in.LocationID, Status: in.Status}
	return s.list(ctx, like, page, func(l cloud.Listed) check.PageOutput { return in.Output(in, l) })
}

func (s *Service) list(ctx context.Context, like cloud.AnnouncedPackage, page cloud.Page, output func(cloud.Listed) check.PageOutput) (out PackagesOutput, err error) {
	err = s.store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(like.BusinessID)
		if err != nil {
			return err
		}
		list, listed, err := cloud.List(v, like, page)
		if err != nil {
			return err
		}
		out = PackagesOutput{Result: true, PageOutput: output(listed), Packages: []PackageBody{}}
		sites := siteBook{v: v, business: b.ID, known: map[cloud.SiteID]*cloud.Site{}}
		for _, p := range list {
			site, err := sites.find(p.SiteID)
			if err != nil {
				return err
			}
			out.Packages = append(out.Packages, packageBody(p, *site, b.Location()))
		}
		return nil
	})
	return out, err
}

// ByPackage names an announced package.
type ByPackage struct {
	Number string `path:"package_number" max:"40"`
}

// PackageOutput shows an announced package.
type PackageOutput struct {
	Result  bool        `json:"result"`
	Package PackageBody `json:"package"`
}

// found finds an announced package that is the caller's: a provider's own, or one that was
// announced to the business of staff. Error: ANNOUNCED_PACKAGE_NOT_FOUND.
func found(v cloud.View, c cloud.Caller, number string) (p cloud.AnnouncedPackage, err error) {
	missing := cloud.E(cloud.NotFound, "ANNOUNCED_PACKAGE_NOT_FOUND")
	id, ok := cloud.ParsePackageNumber(strings.ToUpper(strings.TrimSpace(number)))
	if !ok {
		return p, missing
	}
	p, err = cloud.Find(v, cloud.AnnouncedPackage{Kept: cloud.Kept[cloud.AnnouncedPackageID]{ID: id, BusinessID: c.Account.BusinessID}})
	if errors.Is(err, cloud.ErrNotFound) || err == nil && c.Account.Type == cloud.ProviderType && p.ProviderID != c.Provider.ID {
		return p, missing
	}
	return p, err
}

// Find shows an announced package that is the caller's. Error: ANNOUNCED_PACKAGE_NOT_FOUND.
// Source: lockers-devices 5, operation 29.
func (s *Service) Find(ctx context.Context, c cloud.Caller, in ByPackage) (out PackageOutput, err error) {
	err = s.store.Look(ctx, func(v cloud.View) error {
		p, err := found(v, c, in.Number)
		if err != nil {
			return err
		}
		b, err := v.Business(p.BusinessID)
		if err != nil {
			return err
		}
		site, err := siteBook{v: v, business: b.ID, known: map[cloud.SiteID]*cloud.Site{}}.find(p.SiteID)
		if err != nil {
			return err
		}
		out = PackageOutput{true, packageBody(p, *site, b.Location())}
		return nil
	})
	return out, err
}

// Withdraw removes an announced package of the calling provider that no distribution order
// has yet. Its carrier reference is free again. Error: ANNOUNCED_PACKAGE_NOT_FOUND. Source:
// lockers-devices 5, operation 30.
func (s *Service) Withdraw(ctx context.Context, c cloud.Caller, in ByPackage) (collection.Done, error) {
	now := time.Now().UTC()
	err := s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		p, err := found(v, c, in.Number)
		if err != nil {
			return nil, err
		}
		line := cloud.Audit{BusinessID: p.BusinessID, At: now, Actor: actor(c), Action: "announced_package_removed", Target: p.Number(), Detail: "{}"}
		return &cloud.Changes{RowChanges: cloud.RowChanges{DroppedRows: []cloud.Row{p}}, AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{line}}, Answer: collection.Done{Result: true}}, nil
	})
	return collection.Done{Result: err == nil}, err
}
