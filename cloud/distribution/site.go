// Package distribution has the sites of a business and the packages that carriers announce
// for them. Safe for concurrent use.
package distribution

import (
	"context"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
)

// SiteBody is a site as it is answered.
type SiteBody struct {
	LocationID cloud.SiteID         `json:"location_id"`
	Name       string               `json:"name"`
	Address    string               `json:"address" doc:"One line"`
	Timezone   string               `json:"timezone" doc:"Of the opening hours; empty is that of the business"`
	Hours      []cloud.OpeningHours `json:"opening_hours" doc:"Empty: always open"`
	CreatedAt  *string              `json:"created_at"`
	UpdatedAt  *string              `json:"updated_at"`
}

// SiteOutput shows a site.
type SiteOutput struct {
	Result bool     `json:"result"`
	Site   SiteBody `json:"site"`
}

// SitesInput asks for a part of the sites.
type SitesInput struct {
	Name string `query:"name" max:"120" doc:"The whole name"`
	collection.PageInput
}

// SitesOutput lists sites.
type SitesOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Sites []SiteBody `json:"sites"`
}

// SiteInput describes a new site.
type SiteInput struct {
	Name     string             `json:"name" required:"true" max:"120" line:"true" example:"Front St Lobby"`
	Address  string             `json:"address" required:"true" max:"200" line:"true" example:"120 Front St W, Toronto ON" doc:"One line"`
	Timezone string             `json:"timezone" max:"64" format:"time-zone" example:"America/Toronto" doc:"Of the opening hours; that of the business when absent"`
	Hours    []check.HoursInput `json:"opening_hours" max:"42" doc:"An empty list is always open"`
}

// SiteEdit changes a site. Members that are absent stay as they are.
type SiteEdit struct {
	ID       cloud.SiteID        `path:"location_id" json:"-"`
	Name     *string             `json:"name" min:"1" max:"120" line:"true"`
	Address  *string             `json:"address" min:"1" max:"200" line:"true"`
	Timezone *string             `json:"timezone" max:"64" format:"time-zone" example:"America/Toronto"`
	Hours    *[]check.HoursInput `json:"opening_hours" max:"42" doc:"All hours; an empty list is always open"`
}

// Key is the site's id.
func (in SiteEdit) Key() int64 { return int64(in.ID) }

// BySite names a site.
type BySite struct {
	ID cloud.SiteID `path:"location_id"`
}

// Service has the operations of sites and announced packages.
type Service struct{ store collection.Store }

// New returns one.
func New(s collection.Store) *Service { return &Service{s} }

// FindSite shows a site of the caller's business. Error: SITE_NOT_FOUND.
func (s *Service) FindSite(ctx context.Context, c cloud.Caller, in BySite) (SiteOutput, error) {
	return collection.Find(ctx, s.store, c, in.ID, ShowSite)
}

func siteBody(s cloud.Site, l *time.Location) SiteBody {
	hours := s.Hours
	if hours == nil {
		hours = []cloud.OpeningHours{}
	}
	return SiteBody{s.ID, s.Name, s.Address, s.Timezone, hours, cloud.Stamp(s.CreatedAt, l), cloud.Stamp(s.UpdatedAt, l)}
}

// ShowSite is the answer with one site.
func ShowSite(s cloud.Site, l *time.Location) SiteOutput { return SiteOutput{true, siteBody(s, l)} }

// ShowSites is the answer with a list of sites.
func ShowSites(list []SiteBody, p check.PageOutput) SitesOutput { return SitesOutput{true, p, list} }

// SiteRow is a site in a list.
func SiteRow(s cloud.Site, l *time.Location) SiteBody { return siteBody(s, l) }

// LikeSite is the example that an input asks for.
func LikeSite(in SitesInput) cloud.Site { return cloud.Site{Name: in.Name} }

// FillSite fills a new site. Error: VALIDATION_FAILED.
func FillSite(in SiteInput, s *cloud.Site) error {
	f := check.Fields{}
	s.Name, s.Address, s.Timezone, s.Hours = strings.TrimSpace(in.Name), strings.TrimSpace(in.Address), in.Timezone, check.Hours(in.Hours)
	f.Hours(s.Hours)
	return f.Err()
}

// EditSite changes a site. Error: VALIDATION_FAILED.
func EditSite(in SiteEdit, s *cloud.Site) error {
	f := check.Fields{}
	for to, from := range map[*string]*string{&s.Name: in.Name, &s.Address: in.Address, &s.Timezone: in.Timezone} {
		if from != nil {
			*to = strings.TrimSpace(*from)
		}
	}
	if in.Hours != nil {
		s.Hours = check.Hours(*in.Hours)
		f.Hours(s.Hours)
	}
	return f.Err()
}
