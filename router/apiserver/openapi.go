// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// schemas is the index of the OpenAPI v3 documents of an API server, by path, such as apis/apps/v1.
type schemas struct {
	Paths map[string]struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	} `json:"paths"`
}

// document is where a region has an OpenAPI v3 document.
type document struct {
	at     aggregate.Member
	url    string
	own    string // the group in the region
	common string // the group among the types of all regions
}

// openAPI serves the OpenAPI v3 documents of all regions: of each group and version, that of the first region with it.
func (h *Handler) openAPI(w http.ResponseWriter, r *http.Request, id router.Identity, path []string) error {
	documents, err := h.documents(r.Context(), id)
	if err != nil {
		return err
	}
	if len(path) == 2 {
		index := map[string]any{}
		for name, d := range documents {
			index[name] = map[string]any{"serverRelativeURL": "/openapi/v3/" + name + query(d.url)}
		}
		return answer(w, http.StatusOK, map[string]any{"paths": index})
	}
	name := strings.Join(path[2:], "/")
	d, ok := documents[name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path)
	}
	accept := r.Header.Get("Accept")
	if d.common != d.own || accept == "" {
		accept = "application/json"
	}
	result := d.at.REST.Get().AbsPath("/openapi/v3/"+strings.Replace(name, d.common, d.own, 1)).SetHeader("Accept", accept).Do(r.Context())
	text, err := result.Raw()
	if err != nil {
		return err
	}
	if d.common != d.own {
		text = d.renamed(text)
	}
	var media string
	result.ContentType(&media)
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache, private")
	if hash := query(d.url); hash != "" && hash == "?"+r.URL.RawQuery {
		w.Header().Set("Cache-Control", "private, immutable, max-age=31536000") // the hash names this content
	}
	_, _ = w.Write(text)
	return nil
}

// query returns the query of a URL with its question mark. Its hash lets clients cache the document.
func query(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.RawQuery == "" {
		return ""
	}
	return "?" + u.RawQuery
}

// renamed returns a document with the common group in the paths and kinds of the region's own group.
func (d document) renamed(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte(`"/apis/`+d.own+`/`), []byte(`"/apis/`+d.common+`/`))
	return bytes.ReplaceAll(text, []byte(`"group":"`+d.own+`"`), []byte(`"group":"`+d.common+`"`))
}

// documents returns the OpenAPI v3 documents by their path: for each, the first region that has it, and its URL there.
// Regions that do not answer are skipped. It returns an error if no region answers.
func (h *Handler) documents(ctx context.Context, id router.Identity) (map[string]document, error) {
	regions, err := aggregate.Regions(h.routes, id, nil)
	if err != nil {
		return nil, err
	}
	members := regions.Members()
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	indices, errs := make([]schemas, len(members)), make([]error, len(members))
	each(len(members), func(i int) {
		m := members[i]
		if h.routes.Health(m.Region).Unreachable() {
			errs[i] = &region.Error{Region: m.Region, Op: "read OpenAPI", Err: region.ErrUnavailable}
			return
		}
		text, err := m.REST.Get().AbsPath("/openapi/v3").SetHeader("Accept", "application/json").Do(ctx).Raw()
		if err == nil {
			err = json.Unmarshal(text, &indices[i])
		}
		errs[i] = err
	})
	if err := noneOf(members, errs); err != nil {
		return nil, err
	}
	documents := map[string]document{}
	for i, m := range members {
		for path, at := range indices[i].Paths {
			own := groupOf(path)
			d := document{at: m, url: at.ServerRelativeURL, own: own, common: own}
			if own == m.Region.String() {
				d.common = h.commonGroup(schema.GroupVersionResource{Group: own}, m.Region)
			}
			name := strings.Replace(path, d.own, d.common, 1)
			if _, ok := documents[name]; !ok {
				documents[name] = d
			}
		}
	}
	return documents, nil
}

// groupOf returns the group in the path of a document; empty if it has none.
func groupOf(path string) string {
	parts := strings.Split(path, "/")
	if parts[0] != "apis" || len(parts) < 2 {
		return ""
	}
	return parts[1]
}
