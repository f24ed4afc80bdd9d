// Pinned by macro-tests/tests/expansions. `p::` stands for `::graphable::__private::`, `site!(n)` for the
// place of the n-th segment or boundary in the source.

#[automatically_derived]
impl<T> p::LiveIn for Layer<T>
where
    Param<T>: p::ParamField,
{
    #[inline]
    #[allow(unused_variables)]
    fn write_key(&self, __k: &mut p::KeyWriter) {
        match self {
            Self { w: __f0, blocks: __f1, cache: __f2, eps: __f3 } => {
                <Param<T> as p::ParamField>::field_key(__f0, __k);
                <Vec<Block> as p::ParamField>::field_key(__f1, __k);
                <State<f32> as p::ParamField>::field_key(__f2, __k);
                <f32 as p::ConfigValue>::config_key(__f3, __k);
            }
        }
    }
}
#[automatically_derived]
impl<T> ::graphable::Params for Layer<T>
where
    Param<T>: p::ParamField,
{
    #[allow(unused_variables)]
    fn visit_params(&self, __v: &mut p::ParamVisitor) {
        match self {
            Self { w: __f0, blocks: __f1, cache: __f2, eps: __f3 } => {
                __v.field(
                    "w",
                    |__v| <Param<T> as p::ParamField>::field_params(__f0, __v),
                );
                __v.field(
                    "blocks",
                    |__v| <Vec<Block> as p::ParamField>::field_params(__f1, __v),
                );
                __v.field(
                    "cache",
                    |__v| <State<f32> as p::ParamField>::field_params(__f2, __v),
                );
                let _ = __f3;
            }
        }
    }
}
#[automatically_derived]
impl<T> p::DeviceValue for Layer<T>
where
    Param<T>: p::ParamField,
{}
#[automatically_derived]
impl<T> p::LoadParams for Layer<T>
where
    Param<T>: p::LoadParam,
{
    type Config = Config;
    #[allow(unused_variables)]
    fn load(
        __l: &mut p::Loader<'_>,
        config: &Self::Config,
    ) -> ::core::option::Option<Self> {
        let __f0: ::core::option::Option<Param<T>> = <Param<
            T,
        > as p::LoadParam>::load_param(__l, "w", &([config.rows, 4]));
        let __f1: ::core::option::Option<Vec<Block>> = __l
            .list::<
                Block,
            >("blocks.{}", config.blocks, |__l, __n| __l.nested::<Block>(__n, config));
        let __f2: ::core::option::Option<State<f32>> = <State<
            f32,
        > as p::LoadState>::load_state(__l, "cache", &([config.rows]));
        let __f3: ::core::option::Option<f32> = ::core::option::Option::Some(config.eps);
        ::core::option::Option::Some(Self {
            w: __f0?,
            blocks: __f1?,
            cache: __f2?,
            eps: __f3?,
        })
    }
    #[allow(unused_variables)]
    fn save(&self, __s: &mut p::Exporter) {
        match self {
            Self { w: __f0, blocks: __f1, cache: __f2, eps: __f3 } => {
                {
                    let __i = __f0;
                    <Param<T> as p::LoadParam>::save_param(__i, __s, "w");
                }
                __s.list::<
                        Block,
                    >("blocks.{}", __f1, |__s, __n, __i| __s.nested::<Block>(__n, __i));
                let _ = __f2;
                let _ = __f3;
            }
        }
    }
}
