package api

import (
	"context"
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/work"
)

// workRights are the operations that stand for a kind of work item: who may call the
// first sees the items, who may call the second says something about them.
var workRights = map[string][2]string{
	cloud.WorkException: {"device_order_exceptions.list", "device_order_exceptions.dismiss"},
	cloud.WorkOverdue:   {"device_order_exceptions.list", "device_order_exceptions.resolve"},
	cloud.WorkFault:     {"smart_lockers.devices.find", "smart_lockers.devices.command"},
	cloud.WorkSilent:    {"smart_lockers.devices.find", "smart_lockers.devices.command"},
	cloud.WorkEndpoint:  {"webhook_urls.list", "webhook_urls.pause"},
	cloud.WorkApproval:  {"approvals.list", "approvals.reject"},
}

// work are the operations of the work list. They need no scope of their own: each shows
// and changes items of the kinds that the caller may see and change. table is filled once
// the operations are called.
func (c Config) work(table **catalog.Catalog) []catalog.Operation {
	dismiss := func(ctx context.Context, caller cloud.Caller, id cloud.ExceptionID, note string) error {
		_, err := c.Lockers.DismissException(ctx, caller, locker.DismissInput{ID: id, Note: note})
		return err
	}
	s := &work.Service{Store: c.Store, Dismiss: dismiss, Rights: func(ctx context.Context, caller cloud.Caller, kind string, write bool) error {
		name := workRights[kind][0]
		if write {
			name = workRights[kind][1]
		}
		return c.Pipeline.May(ctx, (*table).Find(name), caller)
	}}
	// marks reports whether a caller may say something about an item.
	marks := func(ctx context.Context, caller cloud.Caller, item map[string]any) bool {
		kind, _ := item["kind"].(string)
		return workRights[kind][1] != "" && s.Rights(ctx, caller, kind, true) == nil
	}
	closes := func(ctx context.Context, caller cloud.Caller, item map[string]any) bool {
		return item["kind"] == cloud.WorkException && marks(ctx, caller, item)
	}
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "work_items.list",
			Summary:     "List what waits for people",
			Description: "Exceptions and faults of cabinets, overdue parcels, cabinets that are silent for 10 minutes, failing webhook endpoints, and writes of agents that wait: the gravest first, and of those the one that waits longest. Only kinds that the caller may read are listed, and no request of the caller's own that another person must decide about.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/work-items",
			Types:       staff,
			Tool:        catalog.Whole{Name: "list_work_items", Category: "cabinets"},
			Noun: &catalog.Noun{
				Name: "work_item", Path: "work", Icon: "inbox",
				ID: "item_id", Refs: []string{"item_id"}, Title: []string{"title", "device_name", "item_id"}, State: "severity", States: "severity",
				Columns: []string{"kind", "severity", "device_name", "title", "owner_name", "since"},
				Verbs:   []string{"work_items.take", "work_items.snooze", "work_items.note", "work_items.close", "work_items.release"},
			},
		}, s.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "work_items.find",
			Summary:     "Get a work item",
			Description: "The item with its owner, its note and until when it is put off. An item ends with its cause and is not found from then on.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/work-items/{id}",
			Types:       staff,
			Errors:      []string{"WORK_ITEM_NOT_FOUND"},
			Tool:        catalog.Whole{Name: "get_work_item", Category: "cabinets", ID: "item_id"},
			Example:     `{"id":"exception-9301"}`,
		}, s.Find, nil),
		catalog.Define(catalog.Operation{
			Name:        "work_items.take",
			Offered:     marks,
			Summary:     "Take a work item",
			Description: "The caller sees to the item from then on. An item of another person is refused unless instead is true.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/work-items/{id}/take",
			Types:       staff,
			Risk:        catalog.RiskLow,
			Undo:        &catalog.Inverse{Operation: "work_items.release", Empty: []string{"owner_id"}},
			Errors:      []string{"WORK_ITEM_NOT_FOUND", "WORK_ITEM_TAKEN"},
			Example:     `{"id":"exception-9301"}`,
		}, s.Take, nil),
		catalog.Define(catalog.Operation{
			Name:        "work_items.release",
			Offered:     marks,
			Needs:       []string{"owner_id"},
			Summary:     "Release a work item",
			Description: "The caller no longer sees to the item: it is free for other people.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/work-items/{id}/release",
			Types:       staff,
			Risk:        catalog.RiskLow,
			Undo:        &catalog.Inverse{Operation: "work_items.take"},
			Errors:      []string{"WORK_ITEM_NOT_FOUND", "WORK_ITEM_TAKEN"},
			Example:     `{"id":"exception-9301"}`,
		}, s.Release, nil),
		catalog.Define(catalog.Operation{
			Name:        "work_items.note",
			Offered:     marks,
			Summary:     "Save the note of a work item",
			Description: "The note takes the place of the former one; an empty one removes it. It stays with the item for all who see it.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/work-items/{id}/note",
			Types:       staff,
			Risk:        catalog.RiskLow,
			Undo:        &catalog.Inverse{Operation: "work_items.note", Fills: map[string]string{"note": "{note}"}},
			Errors:      []string{"WORK_ITEM_NOT_FOUND"},
			Example:     `{"id":"exception-9301","note":"The technician comes at three"}`,
		}, s.Note, nil),
		catalog.Define(catalog.Operation{
			Name:        "work_items.snooze",
			Offered:     marks,
			Summary:     "Snooze a work item",
			Description: "Takes the item out of the list of everyone for some hours, at most 30 days; 0 brings it back. It comes back by itself when it still waits then.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/work-items/{id}/snooze",
			Types:       staff,
			Risk:        catalog.RiskLow,
			Undo:        &catalog.Inverse{Operation: "work_items.snooze", Fills: map[string]string{"hours": "0"}, Empty: []string{"snoozed_until"}},
			Errors:      []string{"WORK_ITEM_NOT_FOUND"},
			Example:     `{"id":"exception-9301","hours":4}`,
		}, s.Snooze, nil),
		catalog.Define(catalog.Operation{
			Name:        "work_items.close",
			Offered:     closes,
			Free:        []string{"open_door"},
			Summary:     "Close the exception of a work item",
			Description: "For exceptions at compartments, once a person has looked: the exception is dismissed with the note. Items of other kinds end with their cause: an overdue parcel is collected, extended or cleared, a cabinet connects, an approval is decided.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        "/api/v1/work-items/{id}/close",
			Types:       staff,
			Risk:        catalog.RiskMedium,
			Errors:      []string{"WORK_ITEM_NOT_FOUND", "WORK_ITEM_STAYS"},
			Example:     `{"id":"exception-9301","note":"The door was shut by hand"}`,
		}, s.Close, nil),
	}
}
