// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// judge evaluates an AdmissionPolicy with the packages that an API server uses. These packages do
// not support variables, so judge replaces each variable by its expression.
type judge struct {
	kind       fanout.Kind
	spec       admissionregistrationv1.ValidatingAdmissionPolicySpec
	conditions plugincel.ConditionEvaluator
	rules      plugincel.ConditionEvaluator
}

func judgeOf(t *testing.T, kind fanout.Kind) *judge {
	t.Helper()
	objects := fanout.AdmissionPolicy(kind)
	require.Len(t, objects, 2)
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[0].Object, &policy, true))
	var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[1].Object, &binding, true))
	require.Equal(t, policy.Name, binding.Spec.PolicyName)

	compiler := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	compile := func(expressions ...string) plugincel.ConditionEvaluator {
		var accessors []plugincel.ExpressionAccessor
		for _, e := range expressions {
			accessors = append(accessors, &matchconditions.MatchCondition{Expression: e})
		}
		evaluator := compiler.CompileCondition(accessors, plugincel.OptionalVariableDeclarations{}, environment.StoredExpressions)
		require.Empty(t, evaluator.CompilationErrors())
		return evaluator
	}
	variables := map[string]string{}
	inline := func(expression string) string {
		return regexp.MustCompile(`variables\.(\w+)`).ReplaceAllStringFunc(expression, func(name string) string {
			value, ok := variables[name]
			require.True(t, ok, "%s is declared before it is used", name)
			return "(" + value + ")"
		})
	}
	for _, v := range policy.Spec.Variables {
		variables["variables."+v.Name] = inline(v.Expression)
	}
	var rules []string
	for _, v := range policy.Spec.Validations {
		rules = append(rules, inline(v.Expression))
		if v.MessageExpression != "" {
			compile("size(" + inline(v.MessageExpression) + ") > 0")
		}
	}
	require.Len(t, policy.Spec.MatchConditions, 1)
	return &judge{kind: kind, spec: policy.Spec, conditions: compile(policy.Spec.MatchConditions[0].Expression), rules: compile(rules...)}
}

// refusals returns the messages of the rules that a write breaks. A nil old is a create.
func (j *judge) refusals(t *testing.T, obj, old *unstructured.Unstructured) (messages []string) {
	t.Helper()
	gvk := j.kind.Resource.GroupVersion().WithKind(j.kind.Kind)
	operation := admission.Create
	var before runtime.Object
	if old != nil {
		operation, before = admission.Update, old
	}
	record := admission.NewAttributesRecord(obj, before, gvk, "default", "x", j.kind.Resource, "", operation, nil, false, nil)
	attributes, err := admission.NewVersionedAttributes(record, gvk, nil) // the objects have this version, so nothing is converted
	require.NoError(t, err)
	request := plugincel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(j.kind.Resource), metav1.GroupVersionKind(gvk))
	ask := func(e plugincel.ConditionEvaluator) []bool {
		results, left, err := e.ForInput(t.Context(), attributes, request, plugincel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
		require.NoError(t, err)
		require.Positive(t, left, "within the budget")
		var answers []bool
		for i, r := range results {
			require.NoError(t, r.Error, "rule %d: %s", i, r.ExpressionAccessor.GetExpression())
			answers = append(answers, r.EvalResult.Value().(bool))
		}
		return answers
	}
	if !ask(j.conditions)[0] {
		return nil
	}
	for i, ok := range ask(j.rules) {
		if !ok {
			messages = append(messages, j.spec.Validations[i].Message)
		}
	}
	return messages
}

// annotated returns a Secret with the claim in state, or without a claim if state is nil.
func annotated(t *testing.T, state *v1alpha1.Fanout, password string) *unstructured.Unstructured {
	t.Helper()
	obj := newSecret("x", password)
	if state != nil {
		text, err := json.Marshal(state)
		require.NoError(t, err)
		obj.SetAnnotations(map[string]string{"example.com/claim": string(text), "other": "kept"})
	}
	return obj
}

func reservation() *v1alpha1.Fanout {
	return &v1alpha1.Fanout{
		Claim: &v1alpha1.Claim{
			Operation: "0123", Coordinator: `odd {"name"},"stage":"x`, Digest: "d", Start: metav1.NewMicroTime(time.Unix(1, 0)),
			Role: v1alpha1.RolePrimary, Peer: "eu", Target: "eu",
		},
		Stage:     v1alpha1.StageReserved,
		Heartbeat: 3,
		Revision:  &v1alpha1.Revision{Number: 1, Operation: "0123", Digest: "d"},
	}
}

// edited returns the state of a reservation after edit has changed it.
func edited(edit func(*v1alpha1.Fanout)) *v1alpha1.Fanout {
	f := reservation()
	edit(f)
	return f
}

func committed(edit func(*v1alpha1.Fanout)) *v1alpha1.Fanout {
	return edited(func(f *v1alpha1.Fanout) {
		f.Stage = v1alpha1.StageActive
		f.History = []v1alpha1.HistoryEntry{{Number: 1, Operation: "0123"}}
		f.Home = &v1alpha1.Home{Peer: "eu", Term: 1}
		if edit != nil {
			edit(f)
		}
	})
}

// recorded returns the state of a secondary whose operation has a record in a central log.
func recorded(edit func(*v1alpha1.Fanout)) *v1alpha1.Fanout {
	return edited(func(f *v1alpha1.Fanout) {
		f.Claim.Role, f.Claim.Record = v1alpha1.RoleSecondary, "r"
		if edit != nil {
			edit(f)
		}
	})
}

func bound(f *v1alpha1.Fanout) { f.Bound = &v1alpha1.ObjectRef{Peer: "eu", UID: "x"} }

func TestAdmissionPolicy(t *testing.T) {
	j := judgeOf(t, secretKind())
	removal := &v1alpha1.Removal{Operation: "9", Coordinator: "c", Start: metav1.NewMicroTime(time.Unix(2, 0))}
	removing := func(f *v1alpha1.Fanout) { f.Stage, f.Removal = v1alpha1.StageRemoving, removal }
	for name, tc := range map[string]struct {
		old, new *v1alpha1.Fanout
		create   bool
		content  string // of the new object; that of the old one is "a"
		refused  string // a part of the message; empty if it is admitted
	}{
		"a reservation is created":     {create: true, new: reservation()},
		"somebody's object is created": {create: true},
		"somebody's object is changed": {content: "b"},
		"created committed":            {create: true, new: committed(nil), refused: "is created Reserved"},
		"a sign of life":               {old: reservation(), new: edited(func(f *v1alpha1.Fanout) { f.Heartbeat++ })},
		"the commit, with content":     {old: reservation(), new: committed(nil), content: "b"},
		"an update":                    {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Revision = &v1alpha1.Revision{Number: 2, Operation: "2", Digest: "e"} }), content: "b"},
		"a removal":                    {old: committed(nil), new: committed(removing)},
		"the home's UID is filled in":  {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Home.UID = "u" })},
		"the home moves":               {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Home = &v1alpha1.Home{Peer: "us", UID: "v", Term: 2} })},
		"the home yields":              {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Home.Yielded = true })},
		"adopted, committed":           {new: committed(nil)},
		"adopted as a reservation":     {new: reservation(), refused: "never as a reservation"},
		"the claim is dropped":         {old: committed(nil), refused: "claim cannot be removed"},
		"the claim is changed":         {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Claim.Operation = "4567" }), refused: "claim cannot be changed"},
		"a reservation changes hands":  {old: reservation(), new: edited(func(f *v1alpha1.Fanout) { f.Claim.Coordinator = "me" }), refused: "claim cannot be changed"},
		"back to Reserved":             {old: committed(nil), new: reservation(), refused: "stage cannot go back"},
		"back from Removing":           {old: committed(removing), new: committed(nil), refused: "stage cannot go back"},
		"a stage of the other mode":    {old: reservation(), new: edited(func(f *v1alpha1.Fanout) { f.Stage = v1alpha1.StageConfigured }), refused: "is not a claim"},
		"the heartbeat falls":          {old: reservation(), new: edited(func(f *v1alpha1.Fanout) { f.Heartbeat = 2 }), refused: "heartbeat cannot fall"},
		"Removing without a removal":   {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Stage = v1alpha1.StageRemoving }), refused: "removal goes with stage Removing"},
		"a removal without Removing":   {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Removal = removal }), refused: "removal goes with stage Removing"},
		"another removal": {old: committed(removing), new: committed(func(f *v1alpha1.Fanout) {
			removing(f)
			f.Removal = &v1alpha1.Removal{Operation: "10", Start: removal.Start}
		}), refused: "removal cannot be changed"},
		"the revision falls":            {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Revision = &v1alpha1.Revision{Number: 0, Operation: "0123"} }), refused: "revision.number cannot fall"},
		"the revision goes":             {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Revision = nil }), refused: "revision.number cannot fall"},
		"another under the same number": {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Revision = &v1alpha1.Revision{Number: 1, Operation: "x"} }), refused: "revision cannot be changed"},
		"the term falls":                {old: committed(func(f *v1alpha1.Fanout) { f.Home.Term = 2 }), new: committed(nil), refused: "home.term cannot fall"},
		"the home moves within a term":  {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.Home.Peer = "us" }), refused: "within a term"},
		"content of a reservation":      {old: reservation(), new: edited(func(f *v1alpha1.Fanout) { f.Heartbeat++ }), content: "b", refused: "while the object is Reserved"},
		"a claim without a stage":       {create: true, new: edited(func(f *v1alpha1.Fanout) { f.Stage = "" }), refused: "is not a claim"},
		"a stage without a claim":       {create: true, new: edited(func(f *v1alpha1.Fanout) { f.Claim = nil }), refused: "is not a claim"},
		"a stage that nobody knows":     {create: true, new: edited(func(f *v1alpha1.Fanout) { f.Stage = "Ready" }), refused: "is not a claim"},
		"bound":                         {old: recorded(nil), new: recorded(bound)},
		"bound without a record":        {old: reservation(), new: edited(bound), refused: "bound is set once"},
		"bound to another":              {old: recorded(bound), new: recorded(func(f *v1alpha1.Fanout) { f.Bound = &v1alpha1.ObjectRef{Peer: "us", UID: "y"} }), refused: "bound is set once"},
		"bound no more":                 {old: recorded(bound), new: recorded(nil), refused: "bound is set once"},
		"many revisions are remembered": {old: committed(nil), new: committed(func(f *v1alpha1.Fanout) { f.History = history(32) })},
	} {
		t.Run(name, func(t *testing.T) {
			content := tc.content
			if content == "" {
				content = "a"
			}
			var old *unstructured.Unstructured
			if !tc.create {
				old = annotated(t, tc.old, "a")
			}
			messages := j.refusals(t, annotated(t, tc.new, content), old)
			if tc.refused == "" {
				require.Empty(t, messages)
				return
			}
			require.Contains(t, fmt.Sprint(messages), tc.refused)
		})
	}
	require.Nil(t, fanout.AdmissionPolicy(fanout.ServiceClusters()), "its CRD guards it")
	once := secretKind()
	once.Mode = fanout.Once
	require.Contains(t, fmt.Sprint(judgeOf(t, once).refusals(t, annotated(t, edited(func(f *v1alpha1.Fanout) { f.Stage = v1alpha1.StageActive }), "a"), annotated(t, reservation(), "a"))), "is not a claim")
}

// A write may remove the payload of a guard if it also changes the mark of the guard, as
// coordinators do. No write may remove the payload of another reservation.
func TestAdmissionPolicyAdmitsTheScrubOfAGuard(t *testing.T) {
	once := secretKind()
	once.Mode = fanout.Once
	j := judgeOf(t, once)
	marked := func(f *v1alpha1.Fanout, mark string) *unstructured.Unstructured {
		obj := annotated(t, f, "b")
		annotations := obj.GetAnnotations()
		annotations["fanout.atoll.dev/guard"] = mark
		obj.SetAnnotations(annotations)
		return obj
	}
	guard, primary := recorded(nil), reservation()
	require.Empty(t, j.refusals(t, marked(guard, "1"), annotated(t, guard, "a")))
	for name, messages := range map[string][]string{
		"without the mark":    j.refusals(t, annotated(t, guard, "b"), annotated(t, guard, "a")),
		"with an empty mark":  j.refusals(t, marked(guard, ""), annotated(t, guard, "a")),
		"of a primary":        j.refusals(t, marked(primary, "1"), annotated(t, primary, "a")),
		"of a kind of copies": judgeOf(t, secretKind()).refusals(t, marked(guard, "1"), annotated(t, guard, "a")),
	} {
		require.Contains(t, fmt.Sprint(messages), "while the object is Reserved", name)
	}
}

func history(n int) (all []v1alpha1.HistoryEntry) {
	for i := range n {
		all = append(all, v1alpha1.HistoryEntry{Number: int64(i), Operation: "1a1fc8bc95a-4d4a0858d35b964a7a57"})
	}
	return all
}

// The policy rejects texts that do not have the form in which coordinators write a claim.
func TestAdmissionPolicyKnowsOneForm(t *testing.T) {
	j := judgeOf(t, secretKind())
	text, err := json.Marshal(reservation())
	require.NoError(t, err)
	for name, annotation := range map[string]string{
		"not JSON":         "mine",
		"in another order": `{"stage":"Reserved","claim":{"operation":"1"}}`,
		"with spaces":      `{ "claim":{"operation":"1"},"stage":"Reserved"}`,
		"a second claim":   string(text[:len(text)-1]) + `,"claim":{"operation":"2"}}`,
		"a second stage":   string(text[:len(text)-1]) + `,"stage":"Active"}`,
		"in capitals":      string(text[:len(text)-1]) + `,"Stage":"Active"}`,
		"unknown fields":   string(text[:len(text)-1]) + `,"more":1}`,
		"more behind it":   string(text) + `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			obj := newSecret("x", "a")
			obj.SetAnnotations(map[string]string{"example.com/claim": annotation})
			require.Contains(t, fmt.Sprint(j.refusals(t, obj, nil)), "is not a claim")
		})
	}
}

// The policy accepts a claim with every field that a coordinator can write. If this test fails
// after a field was added to the claim, add the field to the policy.
func TestAdmissionPolicyKnowsEveryField(t *testing.T) {
	j := judgeOf(t, secretKind())
	var full v1alpha1.Fanout
	fillAll(reflect.ValueOf(&full).Elem())
	full.Stage = v1alpha1.StageRemoving
	full.Claim.Role = v1alpha1.RoleSecondary
	old := full
	old.Stage, old.Removal = v1alpha1.StageActive, nil
	require.Empty(t, j.refusals(t, annotated(t, &full, "a"), annotated(t, &old, "a")))
}

// fillAll sets every field.
func fillAll(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[metav1.MicroTime]():
		v.Set(reflect.ValueOf(metav1.NewMicroTime(time.Unix(1, 0))))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fillAll(v.Field(i))
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillAll(v.Index(i))
		}
	case v.Kind() == reflect.String:
		v.SetString(`text with " and \ and }`)
	case v.Kind() == reflect.Int64:
		v.SetInt(7)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	}
}

// TestAdmissionPolicyAdmitsTheProtocol reads an object in all peers after each command of an Agree,
// an Update and a Remove. The policy admits each change of the object that these reads show.
func TestAdmissionPolicyAdmitsTheProtocol(t *testing.T) {
	r := newRing(t)
	kind := secretKind()
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{kind}})
	j := judgeOf(t, kind)
	name := unique("ca")
	writes := 0
	seen := map[string]*unstructured.Unstructured{}
	look := func() {
		for _, p := range peers {
			conn, err := r.Conn(p)
			require.NoError(t, err)
			obj, err := conn.Dynamic().Resource(kind.Resource).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				continue
			}
			old := seen[string(obj.GetUID())]
			if old != nil && old.GetResourceVersion() == obj.GetResourceVersion() {
				continue
			}
			require.Empty(t, j.refusals(t, obj, old), "in %s", p)
			writes++
			seen[string(obj.GetUID())] = obj
		}
	}
	observed := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{kind}, Observer: &fanout.Observer{
		Step: stepDone(look),
	}})
	_, err := observed.Agree(t.Context(), newSecret(name, "first"), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	_, err = observed.Update(t.Context(), newSecret(name, "second"), fanout.AddOptions{})
	require.NoError(t, err)
	_, err = observed.Remove(t.Context(), kind.GroupKind(), key("default", name), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Greater(t, writes, 9, "three creates, three commits or activations, three updates and a removal")
	requireClean(t, c)
}

// stepDone calls f after each command, one at a time.
func stepDone(f func()) func(context.Context, fanout.StepEvent) {
	var mu sync.Mutex
	return func(_ context.Context, e fanout.StepEvent) {
		if e.Done {
			mu.Lock()
			defer mu.Unlock()
			f()
		}
	}
}
