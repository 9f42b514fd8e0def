package page

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/valyala/fasthttp"
)

// asset is a file that pages name by its version, with its compressed forms, which are
// made once, when the first browser asks for them.
type asset struct {
	kind         string
	body         []byte
	gzip, brotli func() []byte
}

func newAsset(kind string, b []byte) asset {
	return asset{kind, b,
		sync.OnceValue(func() []byte { return fasthttp.AppendGzipBytesLevel(nil, b, fasthttp.CompressBestCompression) }),
		sync.OnceValue(func() []byte { return fasthttp.AppendBrotliBytesLevel(nil, b, fasthttp.CompressBrotliBestCompression) })}
}

// smallAsset bytes are sent as they are: compressing gains less than its header costs.
const smallAsset = 400

// send answers with the asset in the smallest form that the browser takes. Pages that
// hold the token of a form are never compressed (BREACH); assets hold no secret.
func (a asset) send(ctx *fasthttp.RequestCtx) {
	h, body := &ctx.Response.Header, a.body
	h.Add("Vary", "Accept-Encoding")
	switch asked := &ctx.Request.Header; {
	case len(body) < smallAsset:
	case asked.HasAcceptEncoding("br"):
		h.Set("Content-Encoding", "br")
		body = a.brotli()
	case asked.HasAcceptEncoding("gzip"):
		h.Set("Content-Encoding", "gzip")
		body = a.gzip()
	}
	ctx.SetContentType(a.kind)
	ctx.SetBody(body)
}

var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

func (p *kit) loadAssets() error {
	sum := sha256.New()
	err := fs.WalkDir(assetFiles, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := assetFiles.ReadFile(name)
		if err != nil {
			return err
		}
		sum.Write(b)
		p.assets[path.Base(name)] = newAsset(kinds[path.Ext(name)], b)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read page assets: %w", err)
	}
	p.version = hex.EncodeToString(sum.Sum(nil)[:6])
	return nil
}

func (p *kit) asset(ctx *fasthttp.RequestCtx) {
	name, _ := ctx.UserValue("file").(string)
	a, ok := p.assets[name]
	if !ok {
		p.missing(ctx)
		return
	}
	if string(ctx.QueryArgs().Peek("v")) == p.version {
		ctx.Response.Header.Set("Cache-Control", assetLife)
	} else {
		ctx.Response.Header.Set("Cache-Control", "no-cache")
	}
	a.send(ctx)
}

// shortLife is how long addresses without a version are kept.
const shortLife = "public, max-age=86400"

// favicon answers browsers that look for an icon beside the one that pages name.
func (p *kit) favicon(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set("Cache-Control", shortLife)
	p.assets["gate.svg"].send(ctx)
}

// robots lets search engines read the first page and what is written for developers.
// Tracking pages are about people, the rest needs an account.
func (p *kit) robots(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set("Cache-Control", shortLife)
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString("User-agent: *\nAllow: /$\nAllow: /assets/\nAllow: /docs\nAllow: /api/otep-guide\nAllow: /api/webhooks-guide\nDisallow: /\n")
}
