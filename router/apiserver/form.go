// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"compress/gzip"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/apistatus"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// encodingOf returns the first encoding of the header Accept that has one of the given forms.
func encodingOf(r *http.Request, forms ...aggregate.Form) (aggregate.Encoding, error) {
	enc := aggregate.Encoding{Compressed: compressed(r)}
	accepted := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(accepted) == "" {
		return enc, nil
	}
	for clause := range strings.SplitSeq(accepted, ",") {
		form, ok := formOf(clause, r.URL.Query().Get("includeObject") == string(metav1.IncludeObject))
		if ok && slices.Contains(forms, form) {
			enc.Form = form
			return enc, nil
		}
	}
	said := "only application/json is served"
	if len(forms) > 1 {
		said += "; also as=Table and as=PartialObjectMetadata of meta.k8s.io/v1"
	}
	return enc, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable, Message: said,
	}}
}

// formOf returns the form that a clause of a header Accept asks for. ok is false if no answer has it.
func formOf(clause string, includeObject bool) (form aggregate.Form, ok bool) {
	media, params, err := mime.ParseMediaType(clause)
	if err != nil || !slices.Contains([]string{"application/json", "application/*", "*/*"}, media) {
		return form, false
	}
	known := params["g"] == metav1.GroupName && params["v"] == "v1"
	switch as := params["as"]; {
	case as == "":
		return aggregate.Objects, true
	case !known:
		return form, false
	case as == "Table" && includeObject:
		return aggregate.TableWithObjects, true
	case as == "Table":
		return aggregate.Table, true
	default:
		return aggregate.Metadata, as == "PartialObjectMetadata" || as == "PartialObjectMetadataList"
	}
}

// compressed reports whether the client accepts gzip.
func compressed(r *http.Request) bool {
	for value := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		if coding, weight, _ := strings.Cut(strings.TrimSpace(value), ";"); coding == "gzip" && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

// held is how much of an answer is held before it begins. Up to this length, as for an API server, an answer is not
// compressed; and it can still become an error.
const held = 128 << 10

// body writes a long answer.
type body struct {
	w      http.ResponseWriter
	packs  *sync.Pool // of *gzip.Writer; nil if the client does not accept compressed answers
	report *aggregate.Report
	text   []byte
	begun  bool
	packed *gzip.Writer
}

func (b *body) Write(data []byte) (int, error) {
	if len(b.text)+len(data) > held {
		if err := b.flush(); err != nil {
			return 0, err
		}
	}
	b.text = append(b.text, data...)
	return len(data), nil
}

// flush sends the held text.
func (b *body) flush() error {
	if !b.begun {
		b.begun = true
		warn(b.w, b.report)
		b.w.Header().Add("Vary", "Accept, Accept-Encoding")
		if b.packs != nil {
			b.w.Header().Set("Content-Encoding", "gzip")
			b.packed, _ = b.packs.Get().(*gzip.Writer)
			b.packed.Reset(b.w)
		}
		apistatus.Header(b.w, http.StatusOK)
	}
	var out io.Writer = b.w
	if b.packed != nil {
		out = b.packed
	}
	_, err := out.Write(b.text)
	b.text = b.text[:0]
	return err
}

// end sends the rest. Errors mean that the client has gone.
func (b *body) end() {
	if !b.begun {
		b.packs = nil
		b.w.Header().Set("Content-Length", strconv.Itoa(len(b.text)))
	}
	if b.flush() == nil && b.packed != nil {
		_ = b.packed.Close()
	}
	if b.packed != nil {
		b.packs.Put(b.packed)
		b.packed = nil
	}
}

func packers() *sync.Pool {
	return &sync.Pool{New: func() any {
		packed, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // it only fails for unknown levels
		return packed
	}}
}
