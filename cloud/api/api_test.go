package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/api"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/internal/ring"
)

func table() *catalog.Catalog {
	return api.New(api.Config{Setup: setup.New(setup.Config{}), Enrol: func(context.Context, string, string, []byte) (any, error) { return nil, nil }})
}

// The description is valid by a third-party library, and has every row once.
func TestTheDescriptionIsValidOpenAPI(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestSchemasSayWhatChecksSay, of the same description")
	raw := table().OpenAPI("https://api.example.com", "test")
	require.Equal(t, string(raw), string(table().OpenAPI("https://api.example.com", "test")), "the same table, the same text")
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(context.Background(), openapi3.EnableExamplesValidation()))
	seen := map[string]bool{}
	for _, item := range doc.Paths.Map() {
		for _, o := range item.Operations() {
			require.False(t, seen[o.OperationID])
			seen[o.OperationID] = true
			if o.RequestBody != nil { // one that must hold something must be there
				body := o.RequestBody.Value
				kind := "application/json"
				if table().Find(o.OperationID).Upload() != nil {
					kind = catalog.FormType
				}
				required := len(body.Content.Get(kind).Schema.Value.Required) > 0
				require.Equal(t, required || table().Find(o.OperationID).Raw() != nil, body.Required, o.OperationID)
			}
		}
	}
	require.Len(t, seen, len(table().Operations()))
	require.Len(t, doc.Tags, 44)
}

// Every code that an operation may answer has a message.
func TestEveryErrorHasAMessage(t *testing.T) {
	for _, o := range table().Operations() {
		for _, code := range o.Errors {
			require.True(t, locale.HasError(code), "%s: %s", o.Name, code)
		}
	}
}

// keyless are calls that create something, show no secret and take no Idempotency-Key:
// a repeat gives what the first one made, or is refused by what it names.
var keyless = []string{"platform.exports.begin", "platform.removals.begin", "driver.register"}

// A call that creates takes an Idempotency-Key, so that it can be repeated after a lost
// answer.
func TestCallsThatCreateTakeAKey(t *testing.T) {
	t.Parallel()
	creating := 0
	for _, o := range table().Operations() {
		if o.Method != http.MethodPost || o.Secret || o.Status != http.StatusCreated && o.Status != http.StatusAccepted {
			continue
		}
		creating++
		require.Equal(t, slices.Contains(keyless, o.Name), !o.Idempotent, "%s creates and takes no key", o.Name)
	}
	require.Greater(t, creating, 15)
}

// areas are those of interface document 1, written down once more.
const areas = "Broker Order Assignments, User, Driver, Client, Shipping, AddressBook, DriverInfo, Skills, ReturnReasons, LabelService, OCR, POI, Dataset, Alliance, Tracking, Customer, ThirdPartyDelivery, Warehouse Transfer, " +
	"InstantRider, OTEP, Custom Maps, Loading Planner, Packing Plans, Smart Locker, Webhooks, Warehouse Mobile, Platform Apps, Dispatch, Device Operations, Reservations, Driver Route Board, Locker Resale, Luggage Relay, " +
	"Locker Storage, Consolidation, Order Chat, Operations AI Agent, SMS Marketing, Device Orders, Documents, Fleets, Locker Shop, Pick Batching"

// Every operation is of an area of the interface, or of our own one, and its path
// carries a version.
func TestAreasAndVersionsOfOperations(t *testing.T) {
	t.Parallel()
	known := append(strings.Split(areas, ", "), "Features")
	require.ElementsMatch(t, known, catalog.Tags())
	for _, o := range table().Operations() {
		require.Contains(t, known, o.Tag, o.Name)
		require.Regexp(t, `^/api/v[123]/[a-z]`, o.Path, o.Name)
	}
}

// The mirrors of contractor assignments in GraphQL are shut with their module, as its
// addresses are.
func TestMirrorsOfAModuleThatIsOff(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	mirrors := map[string]string{"brokerOrderAssignments": `{ brokerOrderAssignments { total } }`, "assignOrdersToBroker": `mutation { assignOrdersToBroker(orderIds: [1], brokerId: 3) { result } }`,
		"revokeBrokerOrderAssignments": `mutation { revokeBrokerOrderAssignments(orderIds: [1]) { result } }`, "releaseBrokerOrderAssignment": `mutation { releaseBrokerOrderAssignment(orderId: 1) { result } }`}
	for _, on := range []bool{true, false} {
		x.made("PUT", "/api/v1/admin/features/contractor_assignment/42", x.token(cloud.PlatformAdmin), fmt.Sprintf(`{"state":"allowed","enabled":%t}`, on))
		for name, query := range mirrors {
			for _, who := range []cloud.AccountType{cloud.ClientAdmin, cloud.Broker} {
				body := string(x.do("POST", "/api/graphql", x.token(who), fmt.Sprintf(`{"query":%q}`, query)).body)
				require.Equal(t, !on, strings.Contains(body, `"error_code":"MODULE_DISABLED","http_status":403`), "%s as %s: %s", name, who, body)
			}
		}
	}
}
