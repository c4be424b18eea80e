// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fill sets every field below v to a value other than its zero value, with
// different values where the type allows. Type and object metadata stay empty.
func fill(v reflect.Value, seed *int) {
	*seed++
	switch x := v.Addr().Interface().(type) {
	case *metav1.TypeMeta, *metav1.ObjectMeta:
		return
	case *metav1.Time:
		*x = metav1.Unix(1767323045+int64(*seed), 0)
		return
	case *metav1.MicroTime:
		*x = metav1.MicroTime{Time: metav1.Unix(1767323045+int64(*seed), 0).Time}
		return
	case *resource.Quantity:
		*x = resource.MustParse(fmt.Sprint(*seed)) // in its canonical form
		return
	case *runtime.RawExtension:
		x.Raw = fmt.Appendf(nil, `{"seed":%d}`, *seed)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), seed)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), seed)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), seed)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, seed)
		fill(value, seed)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *seed))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*seed))
	case reflect.Uint8:
		v.SetUint(uint64(*seed%255 + 1))
	default:
		panic(fmt.Sprintf("fill does not know %s", v.Type()))
	}
}
