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
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "orders.proof_files.add",
			Summary:     "Add a proof file to a stop",
			Description: "A photo, signature or document of a pickup or delivery stop. The answer has an address that shows the file for some time without a login. replaces_file_id takes the place of another file.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Path:        "/api/v1/orders/{order_id}/proof-files",
			Types:       staff,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Family:      cloud.LocalDelivery,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"ORDER_NOT_FOUND", "FILE_NOT_FOUND", "PAYLOAD_TOO_LARGE"},
			Example:     `{"order_id":120045,"type":"photo","service_type":1,"service_status":1,"captured_at":"2026-11-20T15:42:00-05:00","latitude":43.6532,"longitude":-79.3832}`,
		}, proofs.Attach, nil),
		catalog.Define(catalog.Operation{
			Name:        "orders.proof_files.remove",
			Summary:     "Remove a proof file",
			Description: "The order shows the file no more. The stored file is removed some time later.",
			Tag:         "Client",
			Method:      http.MethodDelete,
			Path:        "/api/v1/orders/{order_id}/proof-files/{file_id}",
			Types:       staff,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Family:      cloud.LocalDelivery,
			Errors:      []string{"ORDER_NOT_FOUND", "FILE_NOT_FOUND"},
			Example:     `{"order_id":120045,"file_id":51}`,
		}, proofs.Detach, nil),
		catalog.Define(catalog.Operation{
			Name:        "driver.orders.proof_files",
			Summary:     "Add a proof file to the calling driver's stop",
			Description: "As for staff, for an order that the calling driver has.",
			Tag:         "Driver",
			Method:      http.MethodPost,
			Path:        "/api/v1/driver/orders/{order_id}/proof-files",
			Types:       drivers,
			Scopes:      []string{"routes:write"},
			Risk:        catalog.RiskMedium,
			Family:      cloud.LocalDelivery,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"ORDER_NOT_FOUND", "FILE_NOT_FOUND", "PAYLOAD_TOO_LARGE"},
			Example:     `{"order_id":120045,"type":"photo","service_type":1,"service_status":1,"captured_at":"2026-11-20T15:42:00-05:00","latitude":43.6532,"longitude":-79.3832}`,
		}, proofs.Attach, nil),
		catalog.Define(catalog.Operation{
			Name:        "files.find",
			Summary:     "Get a stored file by its signed address",
			Description: "The address is made by others of these operations and is good for a limited time. A changed address is not found; one that is over answers GONE.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        object.Prefix + "{area}/{name}",
			Group:       catalog.Unlimited,
			NoToken:     true,
			Secret:      true,
			Media:       []string{"image/jpeg", "image/png", "image/webp", "application/pdf", "video/mp4", "application/gzip"},
			Errors:      []string{"FILE_NOT_FOUND", "GONE"},
			Example:     `{"area":"proof","name":"01JD4V4Q2M8Z3N6R7T9X0B5C1D.jpg","expires":"1796068217","signature":"56100457d40e0537d9bb14e9d6b78d99eb686561802d7acd29931c9cfb31397f"}`,
		}, c.file, file),
	}
}

type fileInput struct {
	Area      string `path:"area"`
	Name      string `path:"name"`
	Expires   string `query:"expires" doc:"As the address has it"`
	Signature string `query:"signature" doc:"As the address has it"`
}

// file opens a stored file for a caller with an address that was signed for it.
func (c Config) file(ctx context.Context, _ cloud.Caller, in fileInput) (catalog.Stream, error) {
	path := in.Area + "/" + in.Name
	ok, over := c.Files.Signed(path, in.Expires, in.Signature)
	switch {
	case !ok:
		return catalog.Stream{}, cloud.E(cloud.NotFound, "FILE_NOT_FOUND")
	case over:
		return catalog.Stream{}, cloud.E(cloud.NotFound, "GONE")
	}
	f, err := c.Files.Get(ctx, path)
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
