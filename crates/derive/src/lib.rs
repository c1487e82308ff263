//! `derive(Entity)`: declares how a struct is replicated to players. Used by way of `sametick_sim::replica`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{Data, DeriveInput, Error, Field, Fields, FieldsNamed, Ident, LitFloat, LitInt, LitStr, Result};

/// Makes a struct an entity. Every field is replicated.
///
/// On the struct, `#[entity(…)]` takes
/// - `name = "ship"`: its name; the struct's name in lower case by default;
/// - `feature = "movement"`: the channel on which scripts receive it; its name by default;
/// - `zone(near within 100.0 at 10 hz)`, once for each zone, from near to far.
///
/// On a field it takes
/// - `step = 0.01`: its quantisation step; 1 by default for whole numbers, required for reals. For a `Quat`, the number
///   of bits of a component;
/// - `place`: the field is the entity's position;
/// - `smooth`, or `turn = 256`: it changes gradually, or around a circle of so many codes; reals are smooth by default;
/// - `zones = "near"`: it is visible up to this zone only;
/// - `hz = 5`: it is sent less often than the rest;
/// - `owner`: it is visible to its owner only.
#[proc_macro_derive(Entity, attributes(entity))]
pub fn entity(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

struct Zone {
    name: String,
    within: TokenStream,
    hz: TokenStream,
}

#[derive(Default)]
struct Head {
    name: Option<String>,
    feature: Option<String>,
    zones: Vec<Zone>,
}

#[derive(Default)]
struct Part {
    step: Option<TokenStream>,
    place: bool,
    smooth: bool,
    turn: Option<TokenStream>,
    zones: Option<(String, Span)>,
    hz: Option<TokenStream>,
    owner: bool,
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(input, "an entity is a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "the fields of an entity have names"));
    };
    let kind = kind(input, fields)?;
    let functions = functions(input, fields);
    let place = place(fields)?;
    let ident = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl ::sametick_sim::replica::Entity for #ident {
            const KIND: ::sametick_sim::replica::Kind = #kind.checked();

            #functions

            fn place(&self) -> ::core::option::Option<[f32; 3]> {
                #place
            }
        }
    })
}

/// Generates the declaration.
fn kind(input: &DeriveInput, fields: &FieldsNamed) -> Result<TokenStream> {
    let head = read_head(input)?;
    let name = head.name.clone().unwrap_or_else(|| input.ident.to_string().to_lowercase());
    let feature = head.feature.clone().unwrap_or_else(|| name.clone());
    let zones = head.zones.iter().map(|Zone { name, within, hz }| {
        quote!(::sametick_sim::replica::Zone { name: #name, within: #within, hz: #hz })
    });
    let declared = fields.named.iter().map(|field| declare(field, &read_part(field)?, &head.zones));
    let declared = declared.collect::<Result<Vec<_>>>()?;
    Ok(quote! {
        ::sametick_sim::replica::Kind {
            name: #name,
            feature: #feature,
            zones: &[#(#zones),*],
            fields: &[#(#declared),*],
        }
    })
}

/// Generates the functions that write, read and interpolate. Locals end in `_`, so that no field has the same name.
fn functions(input: &DeriveInput, fields: &FieldsNamed) -> TokenStream {
    let names: Vec<&Ident> = named(fields).collect();
    let numbers: Vec<usize> = (0..names.len()).collect();
    let types: Vec<_> = fields.named.iter().map(|field| &field.ty).collect();
    let ident = &input.ident;
    let kind = quote!(<#ident as ::sametick_sim::replica::Entity>::KIND);
    let value = quote!(::sametick_sim::replica::Value);
    quote! {
        fn put(&self, slots_: &mut [i32]) {
            let mut at_ = 0;
            #(
                let end_ = at_ + <#types as #value>::SLOTS;
                #value::put(&self.#names, &#kind.fields[#numbers].code, &mut slots_[at_..end_]);
                at_ = end_;
            )*
            let _ = at_;
        }

        fn take(slots_: &[i32]) -> ::core::option::Option<Self> {
            let mut at_ = 0;
            #(
                let end_ = at_ + <#types as #value>::SLOTS;
                let #names = <#types as #value>::take(&#kind.fields[#numbers].code, slots_.get(at_..end_)?)?;
                at_ = end_;
            )*
            (at_ == slots_.len()).then_some(#ident { #(#names),* })
        }

        fn between(&self, to: &Self, t: f32) -> Self {
            #ident { #(#names: #value::between(&self.#names, &to.#names, t, #kind.fields[#numbers].motion)),* }
        }
    }
}

/// Generates the function that returns the position.
fn place(fields: &FieldsNamed) -> Result<TokenStream> {
    let mut place = quote!(::core::option::Option::None);
    let mut found = false;
    for (name, field) in named(fields).zip(&fields.named) {
        if read_part(field)?.place {
            if found {
                return Err(Error::new_spanned(name, "an entity has one place"));
            }
            found = true;
            place = quote!(::sametick_sim::replica::Value::place(&self.#name));
        }
    }
    Ok(place)
}

fn named(fields: &FieldsNamed) -> impl Iterator<Item = &Ident> {
    fields.named.iter().filter_map(|field| field.ident.as_ref())
}

fn read_head(input: &DeriveInput) -> Result<Head> {
    let mut head = Head::default();
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("entity")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                head.name = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("feature") {
                head.feature = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("zone") {
                head.zones.push(read_zone(&meta)?);
            } else {
                return Err(meta.error("an entity takes `name`, `feature` and `zone(…)`"));
            }
            Ok(())
        })?;
    }
    Ok(head)
}

/// Parses `(near within 100.0 at 10 hz)`: unlike other attributes, so that it reads as a phrase.
fn read_zone(meta: &ParseNestedMeta<'_>) -> Result<Zone> {
    let content;
    syn::parenthesized!(content in meta.input);
    let word = |expected: &str| {
        let found: Ident = content.parse()?;
        let wrong = || Error::new(found.span(), "a zone is written `zone(near within 100.0 at 10 hz)`");
        if found == expected { Ok(()) } else { Err(wrong()) }
    };
    let name: Ident = content.parse()?;
    word("within")?;
    let within: syn::Lit = content.parse()?;
    word("at")?;
    let hz: LitInt = content.parse()?;
    word("hz")?;
    let within = as_float(&within)?;
    Ok(Zone { name: name.to_string(), within, hz: quote!(#hz) })
}

/// A number, with a point or without.
fn as_float(number: &syn::Lit) -> Result<TokenStream> {
    let float = match number {
        syn::Lit::Float(float) => float.clone(),
        syn::Lit::Int(int) => LitFloat::new(&format!("{}.0", int.base10_digits()), int.span()),
        other => return Err(Error::new_spanned(other, "a number is expected here")),
    };
    Ok(quote!(#float))
}

fn read_part(field: &Field) -> Result<Part> {
    let mut part = Part::default();
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("entity")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("step") {
                part.step = Some(as_float(&meta.value()?.parse()?)?);
            } else if meta.path.is_ident("place") {
                part.place = true;
            } else if meta.path.is_ident("smooth") {
                part.smooth = true;
            } else if meta.path.is_ident("turn") {
                let circle: syn::Expr = meta.value()?.parse()?;
                part.turn = Some(quote!(#circle));
            } else if meta.path.is_ident("zones") {
                let name: LitStr = meta.value()?.parse()?;
                part.zones = Some((name.value(), name.span()));
            } else if meta.path.is_ident("hz") {
                let hz: LitInt = meta.value()?.parse()?;
                part.hz = Some(quote!(#hz));
            } else if meta.path.is_ident("owner") {
                part.owner = true;
            } else {
                return Err(
                    meta.error("a field takes `step`, `place`, `smooth`, `turn`, `zones`, `hz` and `owner`")
                );
            }
            Ok(())
        })?;
    }
    Ok(part)
}

fn declare(field: &Field, part: &Part, zones: &[Zone]) -> Result<TokenStream> {
    let (ty, name) = (&field.ty, field.ident.as_ref().map(ToString::to_string).unwrap_or_default());
    let step = part.step.clone().unwrap_or_else(|| quote!(1.0));
    let motion = match (&part.turn, part.smooth || part.place) {
        (Some(circle), false) => quote!(::sametick_sim::replica::Motion::Turn(#circle)),
        (Some(_), true) => return Err(Error::new_spanned(field, "it is `smooth` or it turns, not both")),
        (None, true) => quote!(::sametick_sim::replica::Motion::Smooth),
        (None, false) => quote!(<#ty as ::sametick_sim::replica::Value>::MOTION),
    };
    let seen = match &part.zones {
        None => zones.len(),
        Some((name, span)) => {
            let at = zones.iter().position(|zone| zone.name == *name);
            1 + at.ok_or_else(|| Error::new(*span, format!("there is no zone `{name}`")))?
        }
    };
    let (seen, owner) = (seen as u8, part.owner);
    let hz = match &part.hz {
        Some(hz) => quote!(::core::option::Option::Some(#hz)),
        None => quote!(::core::option::Option::None),
    };
    Ok(quote! {
        ::sametick_sim::replica::Field {
            name: #name,
            slots: <#ty as ::sametick_sim::replica::Value>::SLOTS as u16,
            code: <#ty as ::sametick_sim::replica::Value>::CODE.with_step(#step),
            motion: #motion,
            zones: #seen,
            hz: #hz,
            owner: #owner,
            plain: ::sametick_sim::replica::plain_of::<#ty>,
        }
    })
}
