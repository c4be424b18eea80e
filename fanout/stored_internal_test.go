// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/internal/storedtest"
)

// The JSON names in the data of log entries must be those of testdata/journal.txt, because other
// releases read them. A field that is missing or differs loses operations in an upgrade.
// ATOLL_STORED=add adds new names to the file.
func TestStoredNamesOfTheJournal(t *testing.T) {
	now := slices.Concat(jsonNames("journal", reflect.TypeFor[journal]()), jsonNames("outcome", reflect.TypeFor[outcome]()))
	for _, v := range []any{
		protocol.Add, protocol.Update, protocol.Remove, protocol.Move, protocol.Adopt,
		protocol.Join, protocol.Leave, protocol.Force, protocol.Return,
		protocol.Done, protocol.Committed, protocol.AlreadyDone, protocol.Aborted, protocol.Ended, protocol.InDoubt,
		Done, Committed, Aborted, Ended, InDoubt,
	} {
		now = append(now, fmt.Sprintf("value %T %v", v, v))
	}
	now = append(now,
		fmt.Sprintf("value protocol.Once %d", protocol.Once), fmt.Sprintf("value protocol.Everywhere %d", protocol.Everywhere),
		fmt.Sprintf("value protocol.Hasty %d", protocol.Hasty), fmt.Sprintf("value protocol.Patient %d", protocol.Patient), fmt.Sprintf("value protocol.Onward %d", protocol.Onward))
	storedtest.Check(t, "testdata/journal.txt", now)
}

// jsonNames returns the paths of a type's JSON, each with the kind of its value.
func jsonNames(at string, of reflect.Type) []string {
	switch of.Kind() {
	case reflect.Pointer:
		return jsonNames(at, of.Elem())
	case reflect.Slice, reflect.Map:
		return jsonNames(at+"[]", of.Elem())
	case reflect.Struct:
		if of.PkgPath() != reflect.TypeFor[journal]().PkgPath() && !strings.HasPrefix(of.PkgPath(), reflect.TypeFor[journal]().PkgPath()+"/") {
			return []string{at + " " + of.String()}
		}
		var names []string
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case !f.IsExported(), name == "-":
				continue
			case f.Anonymous && name == "":
				names = append(names, jsonNames(at, f.Type)...)
				continue
			case name == "":
				name = f.Name
			}
			names = append(names, jsonNames(at+"."+name, f.Type)...)
		}
		return names
	}
	return []string{at + " " + of.Kind().String()}
}
