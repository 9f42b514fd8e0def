package server

import (
	"context"
	"encoding/base64"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/diagnosis"
)

// takeAnswer takes the file of a cabinet that answers a diagnosis, by PUT.
func takeAnswer(c context.Context, lockers *locker.Service, ctx *fasthttp.RequestCtx) (any, error) {
	if !ctx.IsPut() {
		return nil, cloud.E(cloud.Malformed, "METHOD_NOT_ALLOWED")
	}
	token, _ := ctx.UserValue("token").(string)
	signature, err := base64.StdEncoding.DecodeString(string(ctx.Request.Header.Peek(diagnosis.HeaderSignature)))
	if err != nil {
		signature = nil // it verifies nothing
	}
	err = lockers.TakeAnswer(c, locker.Answer{Token: token, Digest: string(ctx.Request.Header.Peek(diagnosis.HeaderDigest)), Signature: signature, File: ctx.PostBody()})
	if err != nil {
		return nil, err
	}
	return struct {
		Result bool `json:"result"`
	}{true}, nil
}
