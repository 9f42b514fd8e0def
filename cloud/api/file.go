package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/order/proof"
)

// files are proof files, and what is stored of them.
func (c Config) files() []catalog.Operation {
	var stored proof.Files // nil takes none
	if c.Files != nil {
		stored = c.Files
	}
	proofs := proof.New(c.Orders, stored)
	row := func(name, summary, tag, method, path string, types []cloud.AccountType, scopes []string, errs ...string) catalog.Operation {
		return catalog.Operation{Name: name, Summary: summary, Tag: tag, Method: method, Path: path, Types: types, Scopes: scopes, Risk: catalog.RiskMedium, Errors: errs, Family: cloud.LocalDelivery}
	}
	// upload takes a file. It shows an address that anybody may read it at.
	upload := func(r catalog.Operation) catalog.Operation {
		r.Status, r.Idempotent, r.Errors = http.StatusCreated, true, []string{missing, "FILE_NOT_FOUND", "PAYLOAD_TOO_LARGE"}
		r.Example = proof.AttachInput{Type: "photo", Service: 1, Result: 1, CapturedAt: "2026-11-20T15:42:00-05:00", Latitude: ptr(43.6532), Longitude: ptr(-79.3832)}
		return r
	}
	const area = "/proof-files"
	return []catalog.Operation{
		catalog.Define(upload(row("orders.proof_files.add", "Add a proof file to a stop", "Client", "POST", "/api/v1/orders/{order_id}"+area, staff, ordersWrite)), proofs.Attach, nil),
		catalog.Define(row("orders.proof_files.remove", "Remove a proof file", "Client", "DELETE", "/api/v1/orders/{order_id}"+area+"/{file_id}", staff, ordersWrite, missing, "FILE_NOT_FOUND"), proofs.Detach, nil),
		catalog.Define(upload(row("driver.orders.proof_files", "Add a proof file to the calling driver's stop", "Driver", "POST", "/api/v1/driver/orders/{order_id}"+area, drivers, []string{"routes:write"})), proofs.Attach, nil),
		catalog.Define(catalog.Operation{Name: "files.find", Summary: "Get a stored file by its signed address", Tag: "Client", Method: "GET", Path: object.Prefix + "{area}/{name}", NoToken: true,
			Group: catalog.Unlimited, Secret: true, Media: []string{cloud.JPEG, cloud.PNG, cloud.WebP, cloud.PDF, cloud.MP4}, Errors: []string{"FILE_NOT_FOUND", "GONE"}}, c.file, file),
	}
}

type fileInput struct {
	Area      string `path:"area"`
	Name      string `path:"name"`
	Expires   string `query:"expires" doc:"As the address has it"`
	Signature string `query:"signature" doc:"As the address has it"`
}

// file opens a stored file for whoever has an address that was signed for it.
func (c Config) file(_ context.Context, _ cloud.Caller, in fileInput) (catalog.Stream, error) {
	path := in.Area + "/" + in.Name
	ok, over := c.Files.Signed(path, in.Expires, in.Signature)
	switch {
	case !ok:
		return catalog.Stream{}, cloud.E(cloud.NotFound, "FILE_NOT_FOUND")
	case over:
		return catalog.Stream{}, cloud.E(cloud.NotFound, "GONE")
	}
	f, err := c.Files.Get(path)
	if errors.Is(err, cloud.ErrNotFound) {
		return catalog.Stream{}, cloud.E(cloud.NotFound, "FILE_NOT_FOUND")
	}
	return catalog.Stream{ReadCloser: f.ReadCloser, Size: f.Size, Type: f.MIME, Name: in.Name}, err
}

// file is a file as browsers get it: what it is called is ours, what it is was
// found from its bytes, and nothing in it runs.
func file(s catalog.Stream) catalog.Answer {
	how := "inline"
	if !strings.HasPrefix(s.Type, "image/") && !strings.HasPrefix(s.Type, "video/") {
		how = "attachment"
	}
	return catalog.Answer{Body: s, Type: s.Type, Headers: [][2]string{{"Content-Disposition", how + `; filename="` + s.Name + `"`}, {"X-Content-Type-Options", "nosniff"},
		{"Content-Security-Policy", "sandbox; default-src 'none'"}}}
}
