package server

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/store"
)

// beginAgain lets a database that was restored go on: the numbers that cabinets compare
// (versions of configurations and of doors' commands, generations and numbers of code lists), and those by
// which receivers of webhooks order events, continue
// above all that were handed out since the moment that it holds, and were lost with it. Seconds
// of the clock are above them, however often a backup is restored. It runs at the first start
// after a restore, at any node, and again when that was interrupted.
func (s *Server) beginAgain(ctx context.Context) error {
	noted, err := s.Store.Recovery(ctx)
	if err != nil {
		return fmt.Errorf("begin again after a restore: %w", err)
	}
	if noted.IsZero() {
		return nil
	}
	if err := s.Store.RaiseSequences(ctx, time.Now().UnixMilli()); err != nil {
		return fmt.Errorf("begin again after a restore: number events: %w", err)
	}
	const page = 500
	for after := cloud.DeviceID(0); ; {
		devices, err := s.Store.ListAllDevices(ctx, after, page)
		if err != nil {
			return fmt.Errorf("begin again after a restore: %w", err)
		}
		for _, d := range devices {
			after = d.ID
			if err := renumber(ctx, s.Store, d.ID, uint64(time.Now().Unix())); err != nil {
				return fmt.Errorf("begin again after a restore: device %s: %w", d.Code, err)
			}
		}
		if len(devices) < page {
			break
		}
	}
	s.log.Warn("the database was restored: numbers of configurations, commands and code lists continue above those that were lost")
	return s.Store.EndRecovery(ctx, noted)
}

func renumber(ctx context.Context, db *store.DB, id cloud.DeviceID, number uint64) error {
	return db.Decide(ctx, id, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(id)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		d.CodeGeneration, d.CodeList = max(d.CodeGeneration+1, number), max(d.CodeList+1, number)
		if err := device.RaiseConfig(&d, max(d.ConfigVersion+1, number)); err != nil {
			return nil, err
		}
		ch.Devices = []cloud.Device{d}
		cells, err := v.Compartments(id)
		if err != nil {
			return nil, err
		}
		for _, c := range cells {
			c.Version = max(c.Version+1, number)
			ch.Compartments = append(ch.Compartments, c)
		}
		return ch, nil
	})
}
