// One line for each factory of a file compiled for every SIMD target: picks the best target when
// called.
#pragma once

// Defines make_NAME<float> and make_NAME<double> from NAME's class template STAGE<T>, in the
// target's namespace.
#define FOVEA_TARGET_FACTORY(POINTER, NAME, STAGE)          \
  POINTER<float> NAME##_f32(const StageContext& context) {  \
    return std::make_unique<STAGE<float>>(context);         \
  }                                                         \
  POINTER<double> NAME##_f64(const StageContext& context) { \
    return std::make_unique<STAGE<double>>(context);        \
  }

#define FOVEA_FACTORY(POINTER, NAME)                          \
  HWY_EXPORT(NAME##_f32);                                     \
  HWY_EXPORT(NAME##_f64);                                     \
  template <>                                                 \
  POINTER<float> NAME<float>(const StageContext& context) {   \
    return HWY_DYNAMIC_DISPATCH(NAME##_f32)(context);         \
  }                                                           \
  template <>                                                 \
  POINTER<double> NAME<double>(const StageContext& context) { \
    return HWY_DYNAMIC_DISPATCH(NAME##_f64)(context);         \
  }

// Modifiers know their place in the list.
#define FOVEA_TARGET_MODIFIER_FACTORY(NAME, STAGE)                                \
  ModifierPointer<float> NAME##_f32(const StageContext& context, size_t index) {  \
    return std::make_unique<STAGE<float>>(context, index);                        \
  }                                                                               \
  ModifierPointer<double> NAME##_f64(const StageContext& context, size_t index) { \
    return std::make_unique<STAGE<double>>(context, index);                       \
  }

#define FOVEA_MODIFIER_FACTORY(NAME)                                                \
  HWY_EXPORT(NAME##_f32);                                                           \
  HWY_EXPORT(NAME##_f64);                                                           \
  template <>                                                                       \
  ModifierPointer<float> NAME<float>(const StageContext& context, size_t index) {   \
    return HWY_DYNAMIC_DISPATCH(NAME##_f32)(context, index);                        \
  }                                                                                 \
  template <>                                                                       \
  ModifierPointer<double> NAME<double>(const StageContext& context, size_t index) { \
    return HWY_DYNAMIC_DISPATCH(NAME##_f64)(context, index);                        \
  }
