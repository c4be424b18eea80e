// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"context"
	"errors"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateMetadata checks the metadata of objects embedded in o. Since Kubernetes 1.37 objectmeta.Validate has a
// context parameter; this code compiles with and without that parameter.
func validateMetadata(o object, s *structuralschema.Structural) field.ErrorList {
	switch validate := any(objectmeta.Validate).(type) {
	case func(*field.Path, any, *structuralschema.Structural, bool) field.ErrorList:
		return validate(nil, o, s, false)
	case func(context.Context, *field.Path, any, *structuralschema.Structural, bool) field.ErrorList:
		return validate(context.Background(), nil, o, s, false)
	default:
		return field.ErrorList{field.InternalError(nil, errUnknownRelease)}
	}
}

var errUnknownRelease = errors.New("this release of apiextensions-apiserver validates embedded metadata in a way not known here")
