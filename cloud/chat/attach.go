package chat

import (
	"bytes"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/picture"
)

// fileArea is where files of the chat are kept.
const fileArea = "chat"

// fileKinds are the content types that files may have.
var fileKinds = []string{cloud.JPEG, cloud.PNG, cloud.WebP, cloud.PDF, cloud.MP4}

// notTaken is what is said about a file that is of another kind, or false.
const notTaken = "Use a picture (JPEG, PNG, WebP), a PDF document or an MP4 video."

// tooManyPixels is what is said about a picture that a reader's browser could not bear.
const tooManyPixels = "Use a picture of at most 100 million pixels."

const maxPixels = 100_000_000

// AttachInput is a file for a message.
type AttachInput struct {
	File    []byte        `body:"file" doc:"JPEG, PNG, WebP, PDF or MP4, up to 10 MB"`
	OrderID cloud.OrderID `json:"order_id" required:"true"`
	Name    string        `json:"name" max:"200" doc:"As people see it"`
}

// AttachOutput shows a file.
type AttachOutput struct {
	Result     bool       `json:"result"`
	Attachment Attachment `json:"attachment"`
}

// Attach keeps a file that a message of the caller's about the same order may
// have, and a small picture of it if it is a large one. One that no message has
// within a day is removed. Errors:
// ORDER_NOT_FOUND, NOT_A_PARTICIPANT, CONVERSATION_CLOSED, PAYLOAD_TOO_LARGE,
// VALIDATION_FAILED, RATE_LIMITED.
func (s messages) Attach(ctx context.Context, c cloud.Caller, in AttachInput) (out AttachOutput, err error) {
	if s.cfg.Files == nil {
		return out, cloud.E(cloud.Unavailable, codeUnavailable)
	}
	f := newFields()
	// Nothing is written to the disk for what would be refused anyway.
	err = s.store.Look(ctx, func(v cloud.View) error {
		x, err := s.join(v, c, in.OrderID)
		if err == nil {
			err = x.checkWrite()
		}
		if err == nil {
			err = f.Err()
		}
		if err == nil {
			err = s.spendAllowance("attach", x)
		}
		return err
	})
	if err != nil {
		return out, err
	}
	file := in.File
	var small []byte
	if len(file) <= maxFile && picture.Is(file) { // everybody with the tracking number gets it: not where and with what it was taken
		if file, err = picture.Strip(file); err != nil {
			f.Add("file", notTaken)
			return out, f.Err()
		}
		if width, height := picture.Size(file); width*height > maxPixels {
			f.Add("file", tooManyPixels)
			return out, f.Err()
		}
		if small, err = s.thumbs.Make(ctx, file); err != nil {
			return out, err
		}
	}
	stored, err := s.cfg.Files.Put(ctx, fileArea, bytes.NewReader(file), maxFile, fileKinds...)
	a := cloud.ChatAttachment{Name: strings.TrimSpace(in.Name), Path: stored.Path, MIME: stored.MIME, Size: stored.Size}
	switch {
	case errors.Is(err, cloud.ErrFileSize):
		return out, cloud.E(cloud.TooLarge, codeTooLarge)
	case errors.Is(err, cloud.ErrFileKind):
		f.Add("file", notTaken)
		return out, f.Err()
	case err != nil:
		return out, err
	}
	if strings.HasPrefix(a.MIME, "image/") {
		a.Width, a.Height = picture.Size(file)
	}
	if small != nil {
		thumb, err := s.cfg.Files.Put(ctx, fileArea, bytes.NewReader(small), maxFile, cloud.JPEG)
		if err != nil {
			return out, errors.Join(err, s.cfg.Files.Delete(ctx, stored.Path))
		}
		a.Thumbnail = thumb.Path
	}
	if a.Name == "" {
		a.Name = "file" + path.Ext(stored.Path)
	}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := s.join(v, c, in.OrderID)
		if err == nil {
			err = x.checkWrite()
		}
		if err != nil {
			return nil, err
		}
		if a.ID, err = v.NewID(cloud.ChatAttachmentIDs); err != nil {
			return nil, err
		}
		a.BusinessID, a.OrderID, a.By, a.At = x.o.BusinessID, x.o.ID, x.me.Account, x.now
		out = AttachOutput{Result: true, Attachment: x.attachment(a)}
		return &cloud.Changes{ChatChanges: cloud.ChatChanges{ChatAttachments: []cloud.ChatAttachment{a}}, FileChanges: cloud.FileChanges{Files: kept(a)}, Answer: out}, nil
	})
	var refused *cloud.Error
	if errors.As(err, &refused) { // what may have been stored is not known: it is swept if it has no row
		for _, k := range kept(a) {
			err = errors.Join(err, s.cfg.Files.Delete(ctx, k.Path))
		}
	}
	return out, err
}

// kept are the files of an attachment: itself, and the small picture of it.
func kept(a cloud.ChatAttachment) []cloud.KeptFile {
	list := []cloud.KeptFile{{Path: a.Path, BusinessID: a.BusinessID, OrderID: a.OrderID, At: a.At}}
	if a.Thumbnail != "" {
		list = append(list, cloud.KeptFile{Path: a.Thumbnail, BusinessID: a.BusinessID, OrderID: a.OrderID, At: a.At})
	}
	return list
}

// attach moves files into a message.
func (x *participant) attach(in SendInput, m *cloud.ChatMessage, f fields) error {
	pictures := true
	for i, id := range in.AttachmentIDs {
		a, ok, err := found(x.v.ChatAttachment(x.o.BusinessID, id))
		if err != nil {
			return err
		}
		if !ok || a.OrderID != x.o.ID || a.By != x.me.Account || slices.Contains(in.AttachmentIDs[:i], id) {
			f.Add("attachment_ids", "There is no such file that waits for a message of yours in this conversation.")
			return nil
		}
		pictures = pictures && a.Picture()
		m.Attachments = append(m.Attachments, a)
		x.ch.DroppedChatAttachments = append(x.ch.DroppedChatAttachments, a)
	}
	switch {
	case in.Kind == kindImage && !pictures:
		f.Add("attachment_ids", "A message of this kind has pictures only.")
	case in.Kind == kindFiles && pictures:
		m.Kind = kindImage
	case in.Kind == kindFiles:
		m.Kind = kindFile
	}
	return nil
}
