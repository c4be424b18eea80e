// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (s *Server) serveGet(w http.ResponseWriter, c *call) error {
	at, err := c.minimum()
	if err != nil {
		return err
	}
	if err := s.reach(c, at); err != nil {
		return err
	}
	it := s.store.get(c.resource.gr(), c.key())
	if it == nil {
		return apierrors.NewNotFound(c.resource.gr(), c.Name)
	}
	return s.writeItem(w, c, http.StatusOK, it)
}

// minimum returns the resourceVersion of the query; zero if absent.
func (c *call) minimum() (uint64, error) {
	given := c.query.Get("resourceVersion")
	if given == "" {
		return 0, nil
	}
	at, err := strconv.ParseUint(given, 10, 64)
	if err == nil {
		return at, nil
	}
	if c.Verb == "watch" {
		return 0, field.Invalid(field.NewPath("resourceVersion"), given, err.Error())
	}
	return 0, apierrors.NewBadRequest("invalid resource version: " + err.Error())
}

// reach waits until the store's revision has reached at. It returns an error after 3 seconds, or when the request's
// context ends.
func (s *Server) reach(c *call, at uint64) error {
	const patience, pause = 3 * time.Second, 50 * time.Millisecond
	for waited := time.Duration(0); s.store.current() < at; waited += pause {
		if waited >= patience {
			err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", at, s.store.current()), 1)
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
			return err
		}
		if !sleep(c.http.Context().Done(), pause) {
			return c.http.Context().Err()
		}
	}
	return nil
}

// position is a continue token: the revision of the list and the last key that was returned. Revision -1 means that
// the list continues from the current revision.
type position struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

func (p position) String() string {
	p.Version = "meta.k8s.io/v1"
	data, _ := json.Marshal(p) // encoding cannot fail
	return base64.RawURLEncoding.EncodeToString(data)
}

func parsePosition(token string) (position, error) {
	var p position
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	switch {
	case err != nil:
		return p, fmt.Errorf("continue key is not valid: %w", err)
	case p.Version != "meta.k8s.io/v1":
		return p, fmt.Errorf("continue key is not valid: server does not recognize this encoded version %s", p.Version)
	case p.Revision == 0:
		return p, fmt.Errorf("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case p.Start == "":
		return p, fmt.Errorf("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
	}
	return p, nil
}

func (p position) key() objectKey {
	namespace, name, ok := strings.Cut(p.Start, "/")
	if !ok {
		return objectKey{name: namespace}
	}
	return objectKey{namespace: namespace, name: name}
}

func keyText(k objectKey) string {
	if k.namespace == "" {
		return k.name
	}
	return k.namespace + "/" + k.name
}

func (s *Server) serveList(w http.ResponseWriter, c *call) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	if err := c.checkListOptions(); err != nil {
		return err
	}
	at, err := c.minimum()
	if err != nil {
		return err
	}
	limit, err := c.limit()
	if err != nil {
		return err
	}
	var from objectKey
	var inconsistent bool
	switch token := c.query.Get("continue"); {
	case token != "":
		if at != 0 {
			return apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		p, err := parsePosition(token)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		from, inconsistent = p.key(), p.Revision < 0
		if !inconsistent {
			at = uint64(p.Revision)
		}
	default:
		if err := s.reach(c, at); err != nil {
			return err
		}
		if c.query.Get("resourceVersionMatch") != string(metav1.ResourceVersionMatchExact) {
			at = 0
		}
	}
	items, revision, ok := s.store.list(c.resource.gr(), c.Namespace, at)
	if !ok {
		return expired(from)
	}
	page, more := filter.page(items, from, limit)
	next := ""
	var remaining *int64
	if more >= 0 {
		next = position{Revision: int64(revision), Start: keyText(page[len(page)-1].key)}.String()
		if filter.everything() {
			remaining = new(int64(more))
		}
	}
	return s.writeList(w, c, page, revision, next, remaining)
}

// expired returns the error of a list from a compacted revision. If from is set, the error has a token that continues
// the list from the current revision.
func expired(from objectKey) error {
	if from == (objectKey{}) {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	err.ErrStatus.Continue = position{Revision: -1, Start: keyText(from)}.String()
	return err
}

func (c *call) limit() (int, error) {
	given := c.query.Get("limit")
	if given == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(given)
	if err != nil {
		return 0, apierrors.NewBadRequest(err.Error())
	}
	return max(limit, 0), nil
}

func (c *call) checkListOptions() error {
	path := field.NewPath("resourceVersionMatch")
	match, version := c.query.Get("resourceVersionMatch"), c.query.Get("resourceVersion")
	var errs field.ErrorList
	if match != "" {
		if version == "" {
			errs = append(errs, field.Forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
		}
		if c.query.Get("continue") != "" {
			errs = append(errs, field.Forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
		}
		if match != "Exact" && match != "NotOlderThan" {
			errs = append(errs, field.NotSupported(path, match, []string{"Exact", "NotOlderThan", ""}))
		}
		if match == "Exact" && version == "0" {
			errs = append(errs, field.Forbidden(path, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""))
		}
	}
	if c.query.Get("sendInitialEvents") != "" {
		errs = append(errs, field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
	}
	return invalidListOptions(errs)
}

func invalidListOptions(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
}

// page returns up to limit items that match f and come after from; all of them if limit is zero. It also returns the
// number of items from the next match to the end of items, or -1 if no match follows.
func (f *filter) page(items []*item, from objectKey, limit int) ([]*item, int) {
	var page []*item
	for i, it := range items {
		if from != (objectKey{}) && !from.before(it.key) {
			continue
		}
		if !f.matches(it) {
			continue
		}
		if limit > 0 && len(page) == limit {
			return page, len(items) - i
		}
		page = append(page, it)
	}
	return page, -1
}

// writeList writes a list in the form that the client requested.
func (s *Server) writeList(w http.ResponseWriter, c *call, items []*item, revision uint64, next string, remaining *int64) error {
	version := strconv.FormatUint(revision, 10)
	switch c.form() {
	case formTable:
		t := c.resource.table(items, revision, next, c)
		t.RemainingItemCount = remaining
		writeJSON(w, c, http.StatusOK, t)
		return nil
	case formPartialList, formPartial:
		list := metav1.ListMeta{ResourceVersion: version, Continue: next, RemainingItemCount: remaining}
		all := make([]object, len(items))
		for i, it := range items {
			all[i] = partial(it.object)
		}
		writeJSON(w, c, http.StatusOK, map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": list, "items": all})
		return nil
	}
	head, err := json.Marshal(metav1.ListMeta{ResourceVersion: version, Continue: next, RemainingItemCount: remaining})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"apiVersion":%q,"items":[`, c.resource.gv().String())
	for i, it := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		raw, err := c.resource.encodedInList(it)
		if err != nil {
			return err
		}
		b.Write(raw)
	}
	fmt.Fprintf(&b, `],"kind":%q,"metadata":%s}`, c.resource.listKind, head)
	writeRaw(w, c, http.StatusOK, b.Bytes())
	return nil
}
