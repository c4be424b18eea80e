// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

const note = "example.com/region"

var edits = Edits{APIVersion: "common/v1", Suffix: "@eu.x", ResourceVersion: "token", Annotation: "eu.x"}

// edited makes the edits in a decoded object.
func edited(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetAPIVersion(edits.APIVersion)
	if o.GetResourceVersion() != "" {
		o.SetResourceVersion(edits.ResourceVersion)
	}
	metadata, _ := o.Object["metadata"].(map[string]any)
	if name, ok := metadata["name"].(string); ok {
		metadata["name"] = name + edits.Suffix
		notes, ok := metadata["annotations"].(map[string]any)
		if !ok {
			notes = map[string]any{}
			metadata["annotations"] = notes
		}
		notes[note] = edits.Annotation
	}
	return o
}

// text is a string with characters that JSON escapes, and others at the limits of 8 bytes.
var text = rapid.OneOf(rapid.StringN(0, 20, -1), rapid.StringMatching(`[a-z"\\<\n\t]{0,18}`), rapid.StringMatching(`[a-z.]{1,10}`),
	rapid.SampledFrom([]string{"\u2028", "😀 smile", "é", "aaaaaaaé", "\u007f", "\x00"}))

func values(depth int) *rapid.Generator[any] {
	all := []*rapid.Generator[any]{
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.Float64(), func(n float64) any { return n }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just(any(nil)),
	}
	if depth > 0 {
		inner := rapid.Deferred(func() *rapid.Generator[any] { return values(depth - 1) })
		all = append(all,
			rapid.Map(rapid.SliceOfN(inner, 0, 4), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(text, inner, 0, 4), func(m map[string]any) any { return m }))
	}
	return rapid.OneOf(all...)
}

func objects(typed bool) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		metadata := map[string]any{"name": text.Draw(t, "name")}
		for _, key := range []string{"namespace", "uid", "resourceVersion", "generateName"} {
			if rapid.Bool().Draw(t, key) {
				metadata[key] = text.Draw(t, key+" value")
			}
		}
		if rapid.Bool().Draw(t, "labels") {
			metadata["labels"] = rapid.MapOfN(text, rapid.Map(text, func(s string) any { return s }), 0, 3).Draw(t, "label")
		}
		switch rapid.IntRange(0, 3).Draw(t, "annotations") {
		case 1:
			metadata["annotations"] = nil
		case 2, 3:
			metadata["annotations"] = rapid.MapOfN(rapid.OneOf(text, rapid.Just(note)), values(1), 0, 3).Draw(t, "annotation")
		}
		o := map[string]any{"metadata": metadata}
		if typed {
			o["apiVersion"], o["kind"] = "regional/v1", "Thing"
		}
		for key, value := range rapid.MapOfN(rapid.StringMatching(`spec|status|data|[a-z"\\]{1,9}x`), values(3), 0, 3).Draw(t, "other") {
			o[key] = value
		}
		return o
	})
}

// layout writes JSON with the keys in a random order, with random white space, and with random escapes.
func layout(t *rapid.T, v any) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", "", " ", "\n\t"}).Draw(t, "space") }
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		var parts []string
		for _, key := range rapid.Permutation(keys).Draw(t, "order") {
			parts = append(parts, space()+layout(t, key)+space()+":"+space()+layout(t, v[key]))
		}
		return "{" + strings.Join(parts, ",") + space() + "}"
	case []any:
		var parts []string
		for _, value := range v {
			parts = append(parts, space()+layout(t, value)+space())
		}
		return "[" + strings.Join(parts, ",") + space() + "]"
	case string:
		if rapid.IntRange(0, 9).Draw(t, "escape") == 0 {
			var out strings.Builder
			for _, unit := range v {
				if unit < 0x10000 {
					fmt.Fprintf(&out, `\u%04X`, unit)
				} else {
					out.WriteRune(unit)
				}
			}
			return `"` + out.String() + `"`
		}
	}
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// Each object of a list decodes, with the edits in its text, to the decoded object with the same edits; its fingerprint
// is that of the decoded object.
func TestObjectsEqualDecodedOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typed := rapid.Bool().Draw(t, "typed")
		items := []any{}
		for _, o := range rapid.SliceOfN(objects(typed), 0, 3).Draw(t, "items") {
			items = append(items, o)
		}
		answer := layout(t, map[string]any{"apiVersion": "regional/v1", "kind": "ThingList", "items": items,
			"metadata": map[string]any{"resourceVersion": "12", "continue": "more", "remainingItemCount": int64(3)}})
		want := &unstructured.UnstructuredList{}
		require.NoError(t, want.UnmarshalJSON([]byte(answer)), answer)

		r := &Reader{Seed: 77, Annotation: note, Labels: true}
		got, err := r.List([]byte(answer))
		require.NoError(t, err, answer)
		require.Equal(t, "regional/v1 ThingList 12 more", fmt.Sprint(got.APIVersion, " ", got.Kind, " ", got.ResourceVersion, " ", got.Continue))
		require.Len(t, got.Objects, len(want.Items))
		sum := uint64(0)
		for i := range got.Objects {
			o, decoded := &got.Objects[i], &want.Items[i]
			require.Equal(t, Fingerprint(r.Seed, decoded.Object), o.Print, "fingerprint of %v", decoded.Object)
			sum += o.Print
			require.Equal(t, decoded.GetName(), o.Name)
			require.Equal(t, decoded.GetNamespace(), o.Namespace)
			require.Equal(t, string(decoded.GetUID()), o.UID)
			require.Equal(t, decoded.GetResourceVersion(), o.ResourceVersion)
			if len(decoded.GetLabels()) > 0 {
				require.Equal(t, decoded.GetLabels(), o.Labels)
			}
			e := edits
			e.Type = [2]string{edits.APIVersion, "Thing"}
			back := &unstructured.Unstructured{}
			require.Equal(t, string(r.Append(nil, o, e)), string(r.Append(nil, o.Compact(), e)))
			require.NoError(t, back.UnmarshalJSON(r.Append(nil, o, e)))
			require.Equal(t, edited(decoded).Object, back.Object)
			untouched := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(r.Append(nil, o, Edits{}), &untouched.Object))
		}
		require.Equal(t, sum, got.Sum)
	})
}

func TestRowsGetARegionAndAFullName(t *testing.T) {
	r := &Reader{Annotation: note}
	const answer = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},
		"columnDefinitions":[{"name":"Name","type":"string","format":"name"},{"name":"Ready","type":"string"},{"name":"Age","type":"string"}],
		"rows":[{"cells":["web","1/1",{"x":[1,"]"]}],"conditions":[{"type":"Completed"}],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web","resourceVersion":"3"}}},
		{"cells":["other",null,"5m"],"object":{"metadata":{"name":"web"}}}]}`
	l, err := r.List([]byte(answer))
	require.NoError(t, err)
	names := []string{}
	for _, c := range l.Columns {
		names = append(names, c.Name)
	}
	require.Equal(t, []string{"Name", "Ready", "Age"}, names)
	require.JSONEq(t, `{"name":"Ready","type":"string"}`, string(l.Columns[1].Text))
	e := Edits{Suffix: "@eu.x", Annotation: "eu.x", Cell: "eu.x", ResourceVersion: "token"}
	require.JSONEq(t, `{"cells":["web@eu.x","eu.x","1/1",{"x":[1,"]"]}],"conditions":[{"type":"Completed"}],
		"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web@eu.x","resourceVersion":"token","annotations":{"example.com/region":"eu.x"}}}}`,
		string(r.Append(nil, &l.Objects[0], e)))
	require.Contains(t, string(r.Append(nil, &l.Objects[1], e)), `["other","eu.x",null,"5m"]`, "the first cell is not the name")
	e.Columns = []int{1, -1, 0}
	require.Contains(t, string(r.Append(nil, &l.Objects[0], e)), `["web@eu.x","eu.x",{"x":[1,"]"]},null,"1/1"]`)
	require.Contains(t, string(r.Append(nil, l.Objects[0].Compact(), e)), `["web@eu.x","eu.x",{"x":[1,"]"]},null,"1/1"]`)
}

func TestRefusedAnswers(t *testing.T) {
	r := &Reader{Annotation: note}
	good := `{"items":[{"metadata":{"name":"a"}}]}`
	_, err := r.List([]byte(good))
	require.NoError(t, err)
	for answer, want := range map[string]error{
		``:                           errStructure,
		`[]`:                         errStructure,
		good + `x`:                   errSyntax,
		good[:len(good)-1]:           errSyntax,
		`{"items":[{}]}`:             errStructure,
		`{"items":[1]}`:              errStructure,
		`{"items":[{"metadata":1}]}`: errStructure,
		`{"items":[],"items":[]}`:    errTwice,
		`{"items":[{"metadata":{"name":"a"},"metadata":{"name":"b"}}]}`:                               errTwice,
		`{"items":[{"metadata":{"name":"a","n\u0061me":"b"}}]}`:                                       errTwice,
		`{"items":[{"metadata":{"name":"a","resourceVersion":"1","resourceVersion":"2"}}]}`:           errTwice,
		`{"items":[{"metadata":{"name":"a","annotations":{},"annotations":{}}}]}`:                     errTwice,
		`{"items":[{"metadata":{"name":"a","annotations":{"` + note + `":"1","` + note + `":"2"}}}]}`: errTwice,
		`{"items":[{"metadata":{"name":"a"},"kind":"A","kind":"B"}]}`:                                 errTwice,
		`{"items":[{"metadata":{"name":"` + "\xff" + `"}}]}`:                                          errSyntax,
		`{"items":[{"metadata":{"name":"` + "\n" + `"}}]}`:                                            errSyntax,
		`{"items":[{"metadata":{"name":"a"},"x":` + strings.Repeat("[", 10001) + `}]}`:                errDeep,
		`{"rows":[{"cells":[],"object":{"metadata":{"name":"a"}}}]}`:                                  errStructure,
		`{"rows":[{"cells":["a"]}]}`:                                                                  errStructure,
	} {
		_, err := r.List([]byte(answer))
		require.ErrorIs(t, err, want, "%.80s", answer)
	}
}

// FuzzList reads any text. An accepted text is JSON, and its objects decode to equal objects.
func FuzzList(f *testing.F) {
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a\n","annotations":{}},"x":[1,-0.5e3,true,null]}]}`))
	f.Add([]byte(`{"rows":[{"cells":["a",1],"object":{"metadata":{"name":"a"}}}]}`))
	f.Add([]byte(`{"items":[{"metadata":{"name":"\ud83d\ude00\ud83d"},"n":12345678901234567890}]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		r := &Reader{Seed: 1, Annotation: note, Labels: true}
		got, err := r.List(answer)
		if err != nil {
			return
		}
		require.True(t, json.Valid(answer), "it is no JSON")
		want := &unstructured.UnstructuredList{}
		if want.UnmarshalJSON(answer) != nil || len(want.Items) != len(got.Objects) {
			return // a table, or a list without a kind
		}
		for i := range got.Objects {
			text := r.Append(nil, &got.Objects[i], edits)
			back := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(text, &back.Object), "%s", text)
			if o := &want.Items[i]; got.Objects[i].typed() {
				require.Equal(t, edited(o).GetName(), back.GetName())
				require.Equal(t, edited(o).GetAnnotations(), back.GetAnnotations())
			}
		}
	})
}

func TestEverySpecialByteIsFound(t *testing.T) {
	for c := range 256 {
		for place := range 8 {
			w := uint64('a') * ones
			w = w&^(0xff<<(8*place)) | uint64(c)<<(8*place)
			want := c == '"' || c == '\\' || c < ' ' || c > 127
			require.Equal(t, want, special(w) != 0, "byte %d at %d", c, place)
		}
	}
}
