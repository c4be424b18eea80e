// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/schema"
)

// schemaComparer finds the fields and bounds that the two sides define differently. Only one goroutine may use it.
type schemaComparer struct {
	up, down openapi.Client
	known    map[runtimeschema.GroupVersion]comparedGroup
	failed   string // the last error, which is logged once
}

// comparedGroup is the result for the types of one group and version.
type comparedGroup struct {
	up, down string // the addresses of the documents
	at       time.Time
	losses   map[kind][]string
}

// rereadSchemas is how often documents are read again if their address does not change with their content.
const rereadSchemas = 10 * time.Minute

// compareSchemas records for each type which fields and bounds differ between the sides. If a document cannot be read,
// the last result of its types stays.
func (d typeDiscovery) compareSchemas(ctx context.Context, c *schemaComparer) {
	s := d.syncer
	kinds := map[runtimeschema.GroupVersion][]kind{}
	for _, t := range s.synced() {
		kinds[t.kind.GVR.GroupVersion()] = append(kinds[t.kind.GVR.GroupVersion()], t.kind)
	}
	err := c.compare(kinds)
	if text := fmt.Sprint(err); err != nil && text != c.failed {
		logging.From(ctx).Info("Schemas are not compared", "reason", text)
		c.failed = text
	}
	if err == nil {
		c.failed = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compared = true
	for _, t := range s.controllers {
		t.setLosses(c.known[t.kind.GVR.GroupVersion()].losses[t.kind])
	}
}

// compare updates known for kinds. A group whose documents cannot be read keeps its last result.
func (c *schemaComparer) compare(kinds map[runtimeschema.GroupVersion][]kind) error {
	up, err := c.up.Paths()
	if err != nil {
		return wrap("upstream: OpenAPI", err)
	}
	down, err := c.down.Paths()
	if err != nil {
		return wrap("downstream: OpenAPI", err)
	}
	var all error
	for gv, list := range kinds {
		name := documentOf(gv)
		a, b := up[name], down[name]
		if a == nil || b == nil {
			delete(c.known, gv) // not every server describes its types
			continue
		}
		group := comparedGroup{up: a.ServerRelativeURL(), down: b.ServerRelativeURL(), at: time.Now(), losses: map[kind][]string{}}
		if known, ok := c.known[gv]; ok && known.holds(group, list) {
			continue
		}
		if hash := contentHash(group.up); hash != "" && hash == contentHash(group.down) {
			for _, k := range list {
				group.losses[k] = nil
			}
		} else if group.losses, err = compareDocuments(a, b, list); err != nil {
			all = errors.Join(all, wrap(name, err))
			continue
		}
		c.known[gv] = group
	}
	return all
}

// holds reports whether the earlier result g still holds: it is of the same documents as now, and covers all the
// kinds. If a document can change without a change of its address, g must also be younger than rereadSchemas.
func (g comparedGroup) holds(now comparedGroup, kinds []kind) bool {
	lacks := func(k kind) bool { _, ok := g.losses[k]; return !ok }
	if g.up != now.up || g.down != now.down || slices.ContainsFunc(kinds, lacks) {
		return false
	}
	hashed := contentHash(g.up) != "" && contentHash(g.down) != ""
	return hashed || time.Since(g.at) < rereadSchemas
}

// documentOf returns the path of the document of a group and version.
func documentOf(gv runtimeschema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// contentHash returns the content hash in the URL of an OpenAPI document, or "" if the URL has none.
func contentHash(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Query().Get("hash")
}

func compareDocuments(a, b openapi.GroupVersion, kinds []kind) (map[kind][]string, error) {
	up, err := readDocument(a)
	if err != nil {
		return nil, wrap("upstream", err)
	}
	down, err := readDocument(b)
	if err != nil {
		return nil, wrap("downstream", err)
	}
	losses := map[kind][]string{}
	for _, k := range kinds {
		losses[k] = nil
		upSchema, errUp := schemaOf(up, k)
		downSchema, errDown := schemaOf(down, k)
		if errUp != nil || errDown != nil {
			continue // a side does not describe the type by a structural schema: no loss is known
		}
		if losses[k], err = schemaLosses(upSchema, downSchema); err != nil {
			losses[k] = nil
		}
	}
	return losses, nil
}

func readDocument(gv openapi.GroupVersion) (*schema.Document, error) {
	data, err := gv.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	return schema.ReadDocument(data)
}

func schemaOf(d *schema.Document, k kind) (*apiextensionsv1.JSONSchemaProps, error) {
	gvk := k.GVR.GroupVersion().WithKind(k.Kind)
	if classify(k.GVR.GroupResource()).how == custom {
		return d.CustomSchema(gvk)
	}
	return d.Schema(gvk)
}

// schemaLosses returns, one line each, the parts of an upstream object that the downstream drops or rejects, and the
// parts of a downstream status that the upstream drops or rejects.
func schemaLosses(up, down *apiextensionsv1.JSONSchemaProps) ([]string, error) {
	const status = "status"
	lost, err := schema.Losses(schema.Side{Name: "upstream", Schema: withoutField(up, status)}, schema.Side{Name: "downstream", Schema: withoutField(down, status)})
	if err != nil {
		return nil, err
	}
	if _, reported := down.Properties[status]; reported {
		more, err := schema.Losses(schema.Side{Name: "downstream", Schema: onlyField(down, status)}, schema.Side{Name: "upstream", Schema: onlyField(up, status)})
		if err != nil {
			return nil, err
		}
		lost = append(lost, more...)
	}
	var lines []string
	for _, d := range lost {
		lines = append(lines, lossText(d))
	}
	return lines, nil
}

func withoutField(s *apiextensionsv1.JSONSchemaProps, name string) *apiextensionsv1.JSONSchemaProps {
	out := s.DeepCopy()
	delete(out.Properties, name)
	out.Required = slices.DeleteFunc(out.Required, func(r string) bool { return r == name })
	return out
}

// onlyField returns the part of a schema that describes one field.
func onlyField(s *apiextensionsv1.JSONSchemaProps, name string) *apiextensionsv1.JSONSchemaProps {
	out := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: s.XPreserveUnknownFields}
	if property, ok := s.Properties[name]; ok {
		out.Properties = map[string]apiextensionsv1.JSONSchemaProps{name: *property.DeepCopy()}
	}
	return out
}

// lossText describes a difference by the field, the keyword and the values of both sides. The second of d.Values is
// the value of the side that drops or rejects.
func lossText(d schema.Difference) string {
	path, from, to := cmp.Or(d.Path, "the object"), d.Values[0], d.Values[1]
	if d.Keyword == "properties" && to.Value == nil {
		return fmt.Sprintf("field %s is missing %s", path, to.Side)
	}
	return fmt.Sprintf("%s: %s is %s %s and %s %s", path, d.Keyword, valueText(to.Value), to.Side, valueText(from.Value), from.Side)
}

func valueText(v any) string {
	const longest = 80
	if v == nil {
		return "unset"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	var bound struct {
		Value     *float64 `json:"value"`
		Exclusive bool     `json:"exclusive"`
	}
	if json.Unmarshal(data, &bound) == nil && bound.Value != nil {
		if bound.Exclusive {
			return fmt.Sprintf("%v, exclusive,", *bound.Value)
		}
		return fmt.Sprint(*bound.Value)
	}
	return loop.Shorten(string(data), longest)
}
